import type { BenchDocument } from '../document.ts';

/** How long something took, over all that were measured; seconds, null when there were none. */
export interface Delays {
  readonly count: number;
  readonly p50: number | null;
  readonly p99: number | null;
  readonly maximum: number | null;
}

/** What one program used during a measurement; null where the system does not tell, or the server is not the bench's. */
export interface Use {
  readonly cpu_seconds: number | null;
  /** The most that was seen, shared pages shared out among those who use them. */
  readonly memory_bytes: number | null;
}

/** What everything that takes part used. `worker` is exportd's, or that of the bare workflows. */
export interface StackUse {
  readonly worker: Use;
  readonly server: Use;
  readonly temporal: Use;
  readonly postgresql: Use;
}

/** Bare workflows: each schedules one activity, which does nothing, and ends. */
export interface BareResult {
  readonly workflows: number;
  /** How many of them were under way at once. */
  readonly at_once: number;
  readonly seconds: number;
  readonly per_second: number;
  readonly use: StackUse;
}

/** What one execution costs Temporal, on average. */
export interface ExecutionCost {
  /** Executions whose histories were read. */
  readonly sampled: number;
  readonly events: number;
  /** See `actionsOf`. */
  readonly actions: number;
}

/** A backfill of intervals without rows. */
export interface BackfillResult {
  readonly intervals: number;
  readonly at_once: number;
  /** From the command to the event that completes the backfill. */
  readonly seconds: number;
  readonly runs_per_second: number;
  /** By the rate of bare workflows, the mean of the measurements before and after. */
  readonly ratio_to_bare: number;
  /** The same by that of as many bare workflows at once as the backfill has runs. */
  readonly ratio_to_bare_at_once: number;
  readonly run: ExecutionCost;
  /** Of the backfill's workflow for each of its runs, the executions it was continued in together. */
  readonly backfill_events_per_run: number;
  readonly backfill_actions_per_run: number;
  /** Statements on the control database; null where it does not count them. */
  readonly statements_per_run: number | null;
  /** Bytes of the backfill's folded state in the journal when all intervals were opened. */
  readonly backfill_state_bytes: number;
  readonly use: StackUse;
}

/** Ticks of many exports. An interval is due at its end and its jitter after that. */
export interface TicksResult {
  /** Fraction of the interval over which starts are spread. */
  readonly jitter: number;
  readonly ticks: number;
  readonly expected_runs: number;
  readonly completed_runs: number;
  /** Runs whose manifest lies in the bucket. */
  readonly manifests: number;
  readonly runs_with_rows: number;
  /** To the event that opened the run. */
  readonly due_to_opened: Delays;
  /** To the first workflow task of the run's execution, which a worker took up. */
  readonly due_to_first_task: Delays;
  readonly due_to_completed: Delays;
  readonly run: ExecutionCost;
  /** Of the schedule's workflow for each tick. */
  readonly schedule_events_per_run: number;
  readonly schedule_actions_per_run: number;
  readonly statements_per_run: number | null;
  readonly use: StackUse;
}

/** Creating the exports over HTTP. */
export interface CreationResult {
  readonly seconds: number;
  readonly per_second: number;
  readonly use: StackUse;
}

/** What the bench of schedules found; times are seconds. */
export interface ScheduleBenchDocument {
  readonly started_at: string;
  readonly seconds: number;
  readonly machine: BenchDocument['machine'];
  /** Load average of the last minute before and after, the bench's own included in the second. */
  readonly load: { readonly before: number; readonly after: number };
  /** How long after an interval's end a run begins to look for open transactions: Completed cannot be sooner. */
  readonly settle_seconds: number;
  readonly bare: readonly BareResult[];
  readonly backfill: BackfillResult;
  readonly exports: number;
  readonly interval: string;
  /** Null without exports. */
  readonly creation: CreationResult | null;
  readonly ticks: readonly TicksResult[];
  /** Events of the longest history of any execution. */
  readonly largest_history: { readonly events: number; readonly workflow_id: string };
}
