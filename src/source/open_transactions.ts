import type pg from 'pg';
import type { BlockingTransaction } from '../domain/barrier.ts';

type Connection = Pick<pg.ClientBase, 'query'>;

/** Something that blocks a barrier, as a log line names it. */
export interface Described {
  readonly description: string;
}

/** A prepared transaction. It has no session, and survives a restart of the server. */
export interface PreparedTransaction extends Described {
  readonly id: string;
}

/** A cutoff and the time after it, in milliseconds, in which a transaction that starts may still use an earlier clock. */
export interface SettledCutoff {
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
 * be part of a transaction), and backend types that only read. A process without any information is assumed to write.
 *
 * `pg_locks` is read once, so that both locks of a transaction are seen as of one moment.
 */
const openTransactionsQuery = `
  with open as materialized (
    select pid, virtualtransaction, bool_or(locktype = 'transactionid') as has_written from pg_catalog.pg_locks
    where locktype in ('virtualxid', 'transactionid') and mode = 'ExclusiveLock' and granted and pid is not null
    group by pid, virtualtransaction having bool_or(locktype = 'virtualxid'))
  select open.virtualtransaction as virtual_transaction, open.pid,
    to_char(a.backend_start at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as backend_start,
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

/** Lists the open transactions that may write rows below the cutoff; without a cutoff, all that may write rows. */
export const readOpenTransactions = async (
  connection: Connection,
  ownApplicationName: string,
  { cutoff, settleMs }: SettledCutoff | { readonly cutoff: null; readonly settleMs: null },
): Promise<readonly (BlockingTransaction & Described)[]> =>
  (
    await connection.query<BlockingTransaction & Described>(openTransactionsQuery, [
      ownApplicationName,
      cutoff,
      settleMs,
    ])
  ).rows;

/** Lists the prepared transactions. Their `virtualxid` locks are gone. */
export const readPreparedTransactions = async (
  connection: Connection,
): Promise<readonly PreparedTransaction[]> =>
  (
    await connection.query<PreparedTransaction>(
      `select transaction::text || '/' || gid as id,
         format('prepared transaction %L (role %s), prepared %s ago', gid, owner,
           date_trunc('second', clock_timestamp() - prepared)) as description
       from pg_catalog.pg_prepared_xacts where database = current_database() order by prepared`,
    )
  ).rows;
