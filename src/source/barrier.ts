import type pg from 'pg';
import type { BarrierCheck, BarrierState } from './source.ts';

/** The barrier was checked on a standby, which does not show the transactions that are open on its primary. */
export class SourceIsStandby extends Error {
  override readonly name = 'SourceIsStandby';
}

/** Waits in milliseconds, and the application name that identifies exportd's own sessions. */
export interface BarrierOptions {
  readonly settleMs: number;
  readonly pollMs: number;
  readonly ownApplicationName: string;
}

type Connection = Pick<pg.ClientBase, 'query'>;

interface Blocker {
  readonly id: string;
  readonly description: string;
}

/**
 * Checks the barrier once. It opens after three steps: the cutoff is `settleMs` in the past by the source's clock;
 * every transaction that was open at that moment has ended; every transaction that was prepared at the moment after
 * has ended. From then on no new row can appear below the cutoff. A comparison of snapshots would miss a transaction
 * that started before the cutoff and has not written yet.
 * Each check needs a new transaction, because PostgreSQL caches the activity statistics until the transaction ends.
 */
export async function checkBarrier(
  connection: Connection,
  cutoff: string,
  state: BarrierState,
  options: BarrierOptions,
): Promise<BarrierCheck> {
  const blocked = (phase: 'transactions' | 'prepared', blockers: readonly Blocker[]): BarrierCheck => ({
    state: { phase, blockers: blockers.map(({ id }) => id) },
    wait_ms: options.pollMs,
    blocked_by: blockers.map(({ description }) => description),
  });

  if (state.phase === 'settling') {
    const wait_ms = await millisecondsUntilSettled(connection, cutoff, options.settleMs);
    // The first wait is never shorter than the settle time. Otherwise runs that jitter has spread would meet again
    // here.
    const minimumMs = state.checked ? 0 : options.settleMs;
    if (wait_ms > 0)
      return {
        state: { phase: 'settling', checked: true },
        wait_ms: Math.max(wait_ms, minimumMs),
        blocked_by: [],
      };
  }
  if (state.phase === 'settling' || state.phase === 'transactions') {
    const open = await openTransactions(connection, options.ownApplicationName);
    const remaining = state.phase === 'settling' ? open : remainingOf(state.blockers, open);
    if (remaining.length > 0) return blocked('transactions', remaining);
  }
  if (state.phase !== 'open') {
    const prepared = await preparedTransactions(connection);
    const remaining = state.phase === 'prepared' ? remainingOf(state.blockers, prepared) : prepared;
    if (remaining.length > 0) return blocked('prepared', remaining);
  }
  return { state: { phase: 'open' }, wait_ms: 0, blocked_by: [] };
}

const remainingOf = (listed: readonly string[], current: readonly Blocker[]): readonly Blocker[] =>
  current.filter(({ id }) => listed.includes(id));

/**
 * Milliseconds until the cutoff is `settleMs` in the past, by the source's clock; 0 when it is.
 * @throws SourceIsStandby
 */
async function millisecondsUntilSettled(
  connection: Connection,
  cutoff: string,
  settleMs: number,
): Promise<number> {
  const { rows } = await connection.query<{ wait_ms: number; standby: boolean }>(
    `select greatest(0, ceil(1000 * extract(epoch from $1::timestamptz - clock_timestamp()) + $2))::float8 as wait_ms,
       pg_is_in_recovery() as standby`,
    [cutoff, settleMs],
  );
  if (rows[0]?.standby)
    throw new SourceIsStandby(
      'The source is a standby, which cannot show the open transactions of its primary. Set SOURCE_PRIMARY_DATABASE_URL to the primary.',
    );
  return rows[0]?.wait_ms ?? 0;
}

/**
 * Open transactions of this database that may write rows, by virtual transaction id. Sessions that cannot write rows
 * are excluded, because a vacuum holds its id for hours: processes without a database or a user (autovacuum; an
 * unprivileged role does not see the type of another user's process), a running VACUUM (it cannot be part of a
 * transaction), and backend types that only read. A process without any information is assumed to write.
 */
const openTransactionsQuery = `
  select l.virtualtransaction || '/' || l.pid as id,
    format('pid %s (application %s, role %s)%s', l.pid,
      coalesce(nullif(a.application_name, ''), 'unknown'), coalesce(a.usename, 'unknown'),
      ', transaction open for ' || date_trunc('second', clock_timestamp() - a.xact_start)) as description
  from pg_catalog.pg_locks l left join pg_catalog.pg_stat_activity a on a.pid = l.pid
  where l.locktype = 'virtualxid' and l.granted and l.pid is not null
    and (a.pid is null or (
      a.datname = current_database() and a.usesysid is not null and a.application_name is distinct from $1
      and coalesce(a.backend_type, '') <> all (array['autovacuum worker', 'walsender', 'parallel worker'])
      and not exists (select from pg_catalog.pg_stat_progress_vacuum v where v.pid = l.pid)))
  order by a.xact_start nulls last, l.pid`;

const openTransactions = async (
  connection: Connection,
  ownApplicationName: string,
): Promise<readonly Blocker[]> =>
  (await connection.query<Blocker>(openTransactionsQuery, [ownApplicationName])).rows;

/** A prepared transaction has no session, so its lock is not among the `virtualxid` locks. */
const preparedTransactions = async (connection: Connection): Promise<readonly Blocker[]> =>
  (
    await connection.query<Blocker>(
      `select transaction::text || '/' || gid as id,
         format('prepared transaction %L (role %s), prepared %s ago', gid, owner,
           date_trunc('second', clock_timestamp() - prepared)) as description
       from pg_catalog.pg_prepared_xacts where database = current_database() order by prepared`,
    )
  ).rows;
