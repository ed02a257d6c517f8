import type pg from 'pg';
import type { BarrierState, BlockingTransaction, UnsettledBarrier } from '../domain/barrier.ts';
import {
  readOpenTransactions,
  readPreparedTransactions,
  type Described,
  type PreparedTransaction,
  type SettledCutoff,
} from './open_transactions.ts';
import { SourceIsStandby } from './source_connection.ts';
import type { BarrierCheck } from './source.ts';

/** Waits in milliseconds, and the application name that identifies exportd's own sessions. */
export interface BarrierOptions {
  readonly settleMs: number;
  readonly pollMs: number;
  readonly ownApplicationName: string;
}

type Connection = Pick<pg.ClientBase, 'query'>;

/** The result of a check whose barrier is open. */
export const openBarrier: BarrierCheck = { state: { phase: 'open' }, wait_ms: 0, blocked_by: [] };

/**
 * Checks the barrier once. It opens after three steps: the cutoff is `settleMs` in the past by the source's clock;
 * every transaction that may write rows below it, of those open at that moment, has ended; every transaction that was
 * prepared at the moment after has ended. From then on no new row can appear below the cutoff. A comparison of snapshots
 * would miss a transaction that started before the cutoff and has not written yet.
 * Each check needs a new transaction, because PostgreSQL caches the activity statistics until the transaction ends.
 * @throws SourceIsStandby
 */
export async function checkBarrier(
  connection: Connection,
  cutoff: string,
  state: BarrierState,
  options: BarrierOptions,
): Promise<BarrierCheck> {
  if (state.phase === 'open') return openBarrier;
  if (state.phase !== 'settling') return advance(state, createTransactionLists(connection, options), options);
  const { wait_ms } = await readServer(connection, { cutoff, settleMs: options.settleMs });
  if (wait_ms > 0) {
    // The first wait is never shorter than the settle time. Otherwise runs that jitter has spread would meet again
    // here.
    const minimumMs = state.checked ? 0 : options.settleMs;
    return {
      state: { phase: 'settling', checked: true },
      wait_ms: Math.max(wait_ms, minimumMs),
      blocked_by: [],
    };
  }
  const settled = { cutoff, settleMs: options.settleMs };
  return advance('settled', createTransactionLists(connection, options, settled), options);
}

/**
 * Checks blocked barriers with one list of the open transactions, and one of the prepared ones. A state that cannot be
 * read, which a newer version may have stored, stays as it is.
 * @throws SourceIsStandby
 */
export async function checkBarriers(
  connection: Connection,
  states: readonly UnsettledBarrier[],
  options: BarrierOptions,
): Promise<readonly BarrierCheck[]> {
  const lists = createTransactionLists(connection, options);
  const checks: BarrierCheck[] = [];
  for (const state of states)
    try {
      checks.push(await advance(state, lists, options));
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      checks.push({ state, wait_ms: options.pollMs, blocked_by: [] });
    }
  return checks;
}

/** Advances a barrier as far as the lists allow. A standby's replay is not checked here. */
async function advance(
  state: UnsettledBarrier | 'settled',
  lists: TransactionLists,
  { pollMs }: BarrierOptions,
): Promise<BarrierCheck> {
  const blocked = (blockedState: UnsettledBarrier, blockers: readonly Described[]): BarrierCheck => ({
    state: blockedState,
    wait_ms: pollMs,
    blocked_by: blockers.map(({ description }) => description),
  });
  if (state === 'settled' || state.phase === 'transactions') {
    const open = await lists.open();
    const remaining = state === 'settled' ? open.transactions : open.remainingOf(state);
    if (remaining.length > 0) {
      const blockers = remaining.map(({ virtual_transaction, pid, backend_start }) => ({
        virtual_transaction,
        pid,
        backend_start,
      }));
      return blocked({ phase: 'transactions', server_start: open.server_start, blockers }, remaining);
    }
  }
  const prepared = await lists.prepared();
  const remaining =
    state !== 'settled' && state.phase === 'prepared'
      ? prepared.filter(({ id }) => state.blockers.includes(id))
      : prepared;
  if (remaining.length > 0)
    return blocked({ phase: 'prepared', blockers: remaining.map(({ id }) => id) }, remaining);
  return openBarrier;
}

/** The open transactions of a server at one moment. */
interface OpenTransactions {
  readonly server_start: string;
  readonly transactions: readonly (BlockingTransaction & Described)[];
  /** The blockers of a barrier that have not ended. */
  remainingOf(
    state: Extract<UnsettledBarrier, { phase: 'transactions' }>,
  ): readonly (BlockingTransaction & Described)[];
}

/** The lists that barriers compare themselves with. Each is read once, when it is first needed. */
interface TransactionLists {
  open(): Promise<OpenTransactions>;
  /** A transaction is prepared before its virtual id is released, so this list is read after the open ones. */
  prepared(): Promise<readonly PreparedTransaction[]>;
}

function createTransactionLists(
  connection: Connection,
  { ownApplicationName }: BarrierOptions,
  settled?: SettledCutoff,
): TransactionLists {
  let openList: Promise<OpenTransactions> | undefined;
  let preparedList: Promise<readonly PreparedTransaction[]> | undefined;
  const readOpen = async (): Promise<OpenTransactions> => {
    const { server_start } = await readServer(connection);
    const transactions = await readOpenTransactions(
      connection,
      ownApplicationName,
      settled ?? { cutoff: null, settleMs: null },
    );
    const byId = new Map(transactions.map((transaction) => [idOf(transaction), transaction]));
    return {
      server_start,
      transactions,
      remainingOf: (state) =>
        state.server_start === server_start
          ? state.blockers.flatMap((blocker) => {
              const found = byId.get(idOf(blocker));
              return found && mayBeSameSession(found, blocker) ? [found] : [];
            })
          : [],
    };
  };
  const open = () => (openList ??= readOpen());
  return {
    open,
    prepared: async () => {
      await open();
      return (preparedList ??= readPreparedTransactions(connection));
    },
  };
}

const idOf = ({ virtual_transaction, pid }: BlockingTransaction): string => `${virtual_transaction}/${pid}`;

/** After a crash PostgreSQL starts its numbers anew without a new start time. A hidden start is assumed to be the same. */
const mayBeSameSession = (one: BlockingTransaction, other: BlockingTransaction): boolean =>
  one.backend_start === null || other.backend_start === null || one.backend_start === other.backend_start;

/**
 * Reads when the server started, and the milliseconds until a cutoff is `settleMs` in the past by its clock (0 when it is).
 * @throws SourceIsStandby
 */
async function readServer(
  connection: Connection,
  { cutoff, settleMs }: SettledCutoff | { readonly cutoff: null; readonly settleMs: null } = {
    cutoff: null,
    settleMs: null,
  },
): Promise<{ readonly server_start: string; readonly wait_ms: number }> {
  const { rows } = await connection.query<{ server_start: string; wait_ms: number; standby: boolean }>(
    `select to_char(pg_postmaster_start_time() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as server_start,
       greatest(0, ceil(1000 * extract(epoch from $1::timestamptz - clock_timestamp()) + $2::float8))::float8 as wait_ms,
       pg_is_in_recovery() as standby`,
    [cutoff, settleMs],
  );
  if (rows[0]?.standby) throw new SourceIsStandby();
  return { server_start: rows[0]?.server_start ?? '', wait_ms: rows[0]?.wait_ms ?? 0 };
}
