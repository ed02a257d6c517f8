import type pg from 'pg';
import type { BarrierState, BlockingTransaction, UnsettledBarrier } from '../domain/barrier.ts';
import type { Relations } from './relations.ts';
import type { BarrierCheck } from './source.ts';
import { SourceIsStandby } from './source_connection.ts';
import { originsReader, type ReadOrigins, type Subscription } from './row_origins.ts';

export type Connection = Pick<pg.ClientBase, 'query'>;

/** Something that blocks a barrier, as a log line names it. */
interface Described {
  readonly description: string;
}

/** An open or prepared transaction, and when it started or was prepared (ISO 8601); null where the role may not see it. */
interface Dated extends Described {
  readonly since: string | null;
}

/** A prepared transaction. It has no session, and survives a restart of the server. */
interface PreparedTransaction extends Dated {
  readonly id: string;
}

/** A cutoff and the time after it, in milliseconds, in which a transaction that starts may still use an earlier clock. */
interface SettledCutoff {
  readonly cutoff: string;
  readonly settleMs: number;
}

/**
 * Open transactions of this database that may write rows below a cutoff, or all that may write rows.
 *
 * A transaction that starts later than the cutoff and the settle time can write rows below the cutoff only with an
 * `inserted_at` of the client. It blocks if it has written already, which its `transactionid` lock shows. Otherwise every
 * idle transaction would block backfills of old intervals. A transaction without a visible start blocks: the role may
 * not see it, its session does not track its activity, or it has just started.
 *
 * Sessions that cannot write rows are excluded, because a vacuum holds its id for hours: processes without a database or
 * a user (autovacuum; an unprivileged role does not see the type of another user's process), a running VACUUM (it cannot
 * be part of a transaction), and backend types that only read. A process without any information is assumed to write, if it
 * still has none when the list is read again: most have just started or ended, in any database of the server.
 *
 * `pg_locks` is read once, so that both locks of a transaction are seen as of one moment.
 */
const openTransactionsQuery = `
  with open as materialized (
    select pid, virtualtransaction, bool_or(locktype = 'transactionid') as has_written from pg_catalog.pg_locks
    where locktype in ('virtualxid', 'transactionid') and mode = 'ExclusiveLock' and granted and pid is not null
    group by pid, virtualtransaction having bool_or(locktype = 'virtualxid'))
  select open.virtualtransaction as virtual_transaction, open.pid, a.pid is null as is_unknown,
    to_char(a.backend_start at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as backend_start,
    to_char(a.xact_start at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as since,
    format('pid %s (application %s, role %s), transaction %s', open.pid,
      coalesce(nullif(a.application_name, ''), 'unknown'), coalesce(a.usename, 'unknown'),
      coalesce('open for ' || date_trunc('second', clock_timestamp() - a.xact_start),
        'whose start is hidden: grant pg_read_all_stats to wait for fewer transactions')) as description
  from open left join pg_catalog.pg_stat_activity a on a.pid = open.pid
  where ($2::timestamptz is null or open.has_written or a.xact_start is null
      or a.xact_start <= $2::timestamptz + make_interval(secs => $3::float8 / 1000))
    and (a.pid is null or (
      a.datname = current_database() and a.usesysid is not null and a.application_name is distinct from $1
      and coalesce(a.backend_type, '') <> all (array['autovacuum worker', 'walsender', 'parallel worker'])
      and not exists (select from pg_catalog.pg_stat_progress_vacuum v where v.pid = open.pid)))
  order by a.xact_start nulls last, open.pid`;

/** The prepared transactions. Their `virtualxid` locks are gone. */
const preparedTransactionsQuery = `
  select transaction::text || '/' || gid as id,
    to_char(prepared at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as since,
    format('prepared transaction %L (role %s), prepared %s ago', gid, owner,
      date_trunc('second', clock_timestamp() - prepared)) as description
  from pg_catalog.pg_prepared_xacts where database = current_database() order by prepared`;

/** Waits in milliseconds, the relations that are read, and the application name that identifies exportd's own sessions. */
export interface BarrierOptions {
  readonly relations: Relations;
  readonly settleMs: number;
  readonly pollMs: number;
  readonly ownApplicationName: string;
}

/** The result of a check whose barrier is open. */
export const openBarrier: BarrierCheck = { state: { phase: 'open' }, wait_ms: 0, blocked_by: [] };

/**
 * Checks the barrier once. It opens after these steps: the cutoff is `settleMs` in the past by the source's clock, and, where
 * subscriptions write the rows, by that of their publishers; every transaction that may write rows below it, of those open at that moment, has ended; every transaction that was
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
  origins: ReadOrigins = originsReader(connection, options.relations),
): Promise<BarrierCheck> {
  if (state.phase === 'open') return openBarrier;
  if (state.phase !== 'settling')
    return advance(state, createTransactionLists(connection, options, origins), options);
  const server = await readServer(connection, { cutoff, settleMs: options.settleMs });
  const { wait_ms } = server;
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
  const settled = { cutoff, settleMs: options.settleMs, server };
  const lists = createTransactionLists(connection, options, origins, settled);
  const until = new Date(Date.parse(cutoff) + options.settleMs).toISOString();
  return advance({ phase: 'subscribed', until }, lists, options);
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
  const origins = originsReader(connection, options.relations);
  const lists = createTransactionLists(connection, options, origins);
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
  state: UnsettledBarrier,
  lists: TransactionLists,
  { pollMs }: BarrierOptions,
): Promise<BarrierCheck> {
  const blocked = (blockedState: UnsettledBarrier, blockers: readonly Described[]): BarrierCheck => ({
    state: blockedState,
    wait_ms: pollMs,
    blocked_by: blockers.map(({ description }) => description),
  });
  if (state.phase === 'subscribed') {
    const behind = (await lists.origins()).subscriptions.filter((one) => !hasApplied(one, state.until));
    if (behind.length > 0) return blocked(state, behind.map(describeSubscription));
  }
  if (state.phase === 'subscribed' || state.phase === 'transactions') {
    const open = await lists.open();
    const remaining = state.phase === 'subscribed' ? open.transactions : open.remainingOf(state);
    if (remaining.length > 0) {
      const { server_start } = open;
      const started_until = horizonOf(remaining);
      if (started_until !== null)
        return blocked({ phase: 'transactions', server_start, started_until }, remaining);
      const blockers = remaining.map(({ virtual_transaction, pid, backend_start }) => ({
        virtual_transaction,
        pid,
        backend_start,
      }));
      return blocked({ phase: 'transactions', server_start, blockers }, remaining);
    }
  }
  const prepared = await lists.prepared();
  const remaining =
    state.phase !== 'prepared'
      ? prepared
      : 'prepared_until' in state
        ? prepared.filter(({ since }) => isWithin(state.prepared_until, since))
        : prepared.filter(({ id }) => state.blockers.includes(id));
  if (remaining.length === 0) return openBarrier;
  const prepared_until = horizonOf(remaining);
  return blocked(
    prepared_until === null
      ? { phase: 'prepared', blockers: remaining.map(({ id }) => id) }
      : { phase: 'prepared', prepared_until },
    remaining,
  );
}

/** How many transactions a state lists. Each check of a run repeats it in the history, and the journal keeps it. */
const maxListed = 10;

/**
 * The time until which all transactions of a long list started; null for a short one, and where one is hidden, which needs
 * its id. Those that started until then are the list, and at most others that had no need to block: their number only falls.
 */
function horizonOf(transactions: readonly Dated[]): string | null {
  if (transactions.length <= maxListed) return null;
  const times = transactions.flatMap(({ since }) => since ?? []);
  return times.length === transactions.length ? (times.sort().at(-1) ?? null) : null;
}

/** Whether a transaction belongs to those until a horizon. One whose start is hidden by now may, so that nothing is missed. */
const isWithin = (until: string, since: string | null): boolean => since === null || since <= until;

/**
 * How long a publisher may take between reading its position and sending it with a time, in milliseconds. What was written
 * in between is not applied, although the time is later: on a busy machine a row was missed so.
 */
const publisherPauseMs = 1_000;

/** Whether a subscription has applied what its publisher had written by a time of the publisher's clock. */
const hasApplied = ({ is_ready, applied_until }: Subscription, until: string): boolean =>
  is_ready && applied_until !== null && Date.parse(applied_until) > Date.parse(until) + publisherPauseMs;

const describeSubscription = ({ name, is_ready, applied_until }: Subscription): Described => ({
  description: !is_ready
    ? `subscription ${name}, which is disabled or still copies its tables`
    : applied_until === null
      ? `subscription ${name}, which receives nothing`
      : `subscription ${name}, which has applied its publisher's changes up to ${applied_until}`,
});

/** The open transactions of a server at one moment. */
interface OpenTransactions extends Pick<SourceServer, 'server_start' | 'prepares'> {
  readonly transactions: readonly (BlockingTransaction & Dated)[];
  /** The blockers of a barrier that have not ended. */
  remainingOf(
    state: Extract<UnsettledBarrier, { phase: 'transactions' }>,
  ): readonly (BlockingTransaction & Dated)[];
}

/** The lists that barriers compare themselves with. Each is read once, when it is first needed. */
interface TransactionLists {
  open(): Promise<OpenTransactions>;
  /** A transaction is prepared before its virtual id is released, so this list is read after the open ones. */
  prepared(): Promise<readonly PreparedTransaction[]>;
  readonly origins: ReadOrigins;
}

function createTransactionLists(
  connection: Connection,
  { ownApplicationName }: Pick<BarrierOptions, 'ownApplicationName'>,
  origins: ReadOrigins,
  settled?: SettledCutoff & { readonly server: SourceServer },
): TransactionLists {
  let openList: Promise<OpenTransactions> | undefined;
  let preparedList: Promise<readonly PreparedTransaction[]> | undefined;
  const readOpen = async (): Promise<OpenTransactions> => {
    const { server_start, prepares } = settled?.server ?? (await readServer(connection));
    const list = async () => {
      const { rows } = await connection.query<BlockingTransaction & Dated & { readonly is_unknown: boolean }>(
        openTransactionsQuery,
        [ownApplicationName, settled?.cutoff ?? null, settled?.settleMs ?? null],
      );
      return rows;
    };
    let transactions = await list();
    if (transactions.some(({ is_unknown }) => is_unknown)) {
      await connection.query('select pg_catalog.pg_stat_clear_snapshot()');
      transactions = await list();
    }
    const byId = new Map(transactions.map((transaction) => [idOf(transaction), transaction]));
    return {
      server_start,
      prepares,
      transactions,
      remainingOf: (state) => {
        if (state.server_start !== server_start) return [];
        if ('started_until' in state)
          return transactions.filter(({ since }) => isWithin(state.started_until, since));
        return state.blockers.flatMap((blocker) => {
          const found = byId.get(idOf(blocker));
          return found && mayBeSameSession(found, blocker) ? [found] : [];
        });
      },
    };
  };
  const open = () => (openList ??= readOpen());
  return {
    open,
    origins,
    prepared: async () => {
      if (!(await open()).prepares) return [];
      return (preparedList ??= connection
        .query<PreparedTransaction>(preparedTransactionsQuery, [])
        .then(({ rows }) => rows));
    },
  };
}

const idOf = ({ virtual_transaction, pid }: BlockingTransaction): string => `${virtual_transaction}/${pid}`;

/** After a crash PostgreSQL starts its numbers anew without a new start time. A hidden start is assumed to be the same. */
const mayBeSameSession = (one: BlockingTransaction, other: BlockingTransaction): boolean =>
  one.backend_start === null || other.backend_start === null || one.backend_start === other.backend_start;

/** The server of the source, as of one moment. */
interface SourceServer {
  readonly server_start: string;
  /** Whether it may have prepared transactions. It starts with a setting that few change. */
  readonly prepares: boolean;
  /** Until a cutoff is `settleMs` in the past by its clock, in milliseconds; 0 when it is. */
  readonly wait_ms: number;
}

/** @throws SourceIsStandby */
async function readServer(connection: Connection, settled?: SettledCutoff): Promise<SourceServer> {
  const { rows } = await connection.query<SourceServer & { readonly standby: boolean }>(
    `select to_char(pg_postmaster_start_time() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as server_start,
       greatest(0, ceil(1000 * extract(epoch from $1::timestamptz - clock_timestamp()) + $2::float8))::float8 as wait_ms,
       current_setting('max_prepared_transactions', true) is distinct from '0' as prepares,
       pg_is_in_recovery() as standby`,
    [settled?.cutoff ?? null, settled?.settleMs ?? null],
  );
  const [server] = rows;
  if (!server) throw new RangeError('A statement without FROM returns one row.');
  if (server.standby) throw new SourceIsStandby();
  return server;
}
