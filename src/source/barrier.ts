import type pg from 'pg';
import type { BarrierCheck, BarrierState } from './source.ts';

/** The server that the barrier is looked at is a standby: what is open on its primary cannot be seen from there. */
export class SourceIsStandby extends Error {
  override readonly name = 'SourceIsStandby';
}

/** Waits in milliseconds, and the application name that exportd's own sessions are told by. */
export interface BarrierOptions {
  readonly settleMs: number;
  readonly pollMs: number;
  readonly ownApplicationName: string;
}

type Connection = Pick<pg.ClientBase, 'query'>;

interface Blocker {
  readonly id: string;
  readonly words: string;
}

/**
 * One look at the barrier: first the source's own clock has to have passed the cut by the settle time; then every
 * transaction open at that moment has to end, then every transaction that is prepared at the moment after. Only then no
 * row below the cut can appear any more: a transaction that began before the cut and wrote nothing yet is among them,
 * which a comparison of snapshots would miss. Runs in a transaction of its own per look, since PostgreSQL keeps what it
 * has read of the activity for the rest of a transaction.
 */
export async function checkBarrier(
  connection: Connection,
  cutoff: string,
  state: BarrierState,
  options: BarrierOptions,
): Promise<BarrierCheck> {
  const held = (phase: 'transactions' | 'prepared', blockers: readonly Blocker[]): BarrierCheck => ({
    state: { phase, blockers: blockers.map(({ id }) => id) },
    wait_ms: options.pollMs,
    blocked_by: blockers.map(({ words }) => words),
  });

  if (state.phase === 'settling') {
    const wait_ms = await untilSettled(connection, cutoff, options.settleMs);
    // The whole time from the first look, since runs of many exports that jitter has spread would meet again otherwise.
    const least = state.checked ? 0 : options.settleMs;
    if (wait_ms > 0)
      return {
        state: { phase: 'settling', checked: true },
        wait_ms: Math.max(wait_ms, least),
        blocked_by: [],
      };
  }
  if (state.phase === 'settling' || state.phase === 'transactions') {
    const open = await openTransactions(connection, options.ownApplicationName);
    const left = state.phase === 'settling' ? open : stillOf(state.blockers, open);
    if (left.length > 0) return held('transactions', left);
  }
  if (state.phase !== 'open') {
    const prepared = await preparedTransactions(connection);
    const left = state.phase === 'prepared' ? stillOf(state.blockers, prepared) : prepared;
    if (left.length > 0) return held('prepared', left);
  }
  return { state: { phase: 'open' }, wait_ms: 0, blocked_by: [] };
}

const stillOf = (listed: readonly string[], now: readonly Blocker[]): readonly Blocker[] =>
  now.filter(({ id }) => listed.includes(id));

/** Milliseconds, by the source's clock, until the cut has settled; 0 when it has. */
async function untilSettled(connection: Connection, cutoff: string, settleMs: number): Promise<number> {
  const { rows } = await connection.query<{ wait_ms: number; standby: boolean }>(
    `select greatest(0, ceil(1000 * extract(epoch from $1::timestamptz - clock_timestamp()) + $2))::float8 as wait_ms,
       pg_is_in_recovery() as standby`,
    [cutoff, settleMs],
  );
  if (rows[0]?.standby)
    throw new SourceIsStandby(
      'The source is a standby, from which it cannot be told which transactions are open; SOURCE_PRIMARY_DATABASE_URL has to name its primary.',
    );
  return rows[0]?.wait_ms ?? 0;
}

/**
 * The open transactions of this database that may write rows, by their virtual transaction ids. What cannot write them
 * is left out, since a vacuum holds its id for hours: processes without a database or without a user (autovacuum; an
 * unprivileged role is not told the type of other users' processes), a VACUUM at work (it allows no transaction around
 * it), and the types that only read. A process of which nothing is known counts as one that writes.
 */
const openTransactionsQuery = `
  select l.virtualtransaction || '/' || l.pid as id,
    format('pid %s (application %s, role %s)%s', l.pid,
      coalesce(nullif(a.application_name, ''), 'unknown'), coalesce(a.usename, 'unknown'),
      ', its transaction open for ' || date_trunc('second', clock_timestamp() - a.xact_start)) as words
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

/** A prepared transaction belongs to no session any more, so its lock is not among the others. */
const preparedTransactions = async (connection: Connection): Promise<readonly Blocker[]> =>
  (
    await connection.query<Blocker>(
      `select transaction::text || '/' || gid as id,
         format('prepared transaction %L (role %s), waiting for its commit for %s', gid, owner,
           date_trunc('second', clock_timestamp() - prepared)) as words
       from pg_catalog.pg_prepared_xacts where database = current_database() order by prepared`,
    )
  ).rows;
