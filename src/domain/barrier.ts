/** An open transaction that blocks a barrier, identified across restarts of the server. */
export interface BlockingTransaction {
  /** PostgreSQL's virtual transaction id. A restart of the server starts the numbers anew. */
  readonly virtual_transaction: string;
  readonly pid: number;
  /** When its session started (ISO 8601); null where the role may not see it. */
  readonly backend_start: string | null;
}

/** The progress of the wait for open transactions of the source. It is part of histories and of the journal. */
export type BarrierState =
  /** `checked`: an earlier check has found that the cutoff has not settled. */
  { readonly phase: 'settling'; readonly checked?: true } | UnsettledBarrier | OpenBarrier;

/** No transaction that may write rows below the cutoff is left. */
export interface OpenBarrier {
  readonly phase: 'open';
}

/** A barrier that transactions, or a standby, still block. */
export type UnsettledBarrier =
  /**
   * `blockers`: transactions that were open when the list was read, on the server that started at `server_start`
   * (ISO 8601). Its restart ends all of them.
   */
  | {
      readonly phase: 'transactions';
      readonly server_start: string;
      readonly blockers: readonly BlockingTransaction[];
    }
  /** Instead of a long list: all transactions of that server that started until a time (ISO 8601). */
  | { readonly phase: 'transactions'; readonly server_start: string; readonly started_until: string }
  /** `blockers`: prepared transactions, listed after the open ones had ended. They survive restarts. */
  | { readonly phase: 'prepared'; readonly blockers: readonly string[] }
  /** Instead of a long list: all that were prepared until a time (ISO 8601). */
  | { readonly phase: 'prepared'; readonly prepared_until: string }
  /** Subscriptions write the source, and have not applied what their publishers had written by `until` (ISO 8601). */
  | { readonly phase: 'subscribed'; readonly until: string }
  /** The source is a standby that has not replayed the log of its primary up to `position` (an LSN). */
  | { readonly phase: 'replaying'; readonly position: string };
