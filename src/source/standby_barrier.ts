import type pg from 'pg';
import { checkBarrier, type BarrierOptions } from './barrier.ts';
import type { SourceConnections } from './source_connection.ts';
import type { BarrierCheck, BarrierState } from './source.ts';

type Connection = Pick<pg.ClientBase, 'query'>;

/**
 * Checks the barrier of a source that is a standby. First the barrier has to open on the primary, where rows are
 * written. Then the standby has to replay everything that the primary had written by then.
 */
export async function checkStandbyBarrier(
  { primary, standby }: { readonly primary: SourceConnections; readonly standby: SourceConnections },
  cutoff: string,
  state: BarrierState,
  options: BarrierOptions,
): Promise<BarrierCheck> {
  let position = state.phase === 'replaying' ? state.position : undefined;
  if (position === undefined) {
    const check = await primary.read({}, undefined, ({ connection }) =>
      checkBarrier(connection, cutoff, state, options),
    );
    if (check.state.phase !== 'open') return check;
    // Read in a transaction that starts after the last check, so that the position includes everything committed by
    // then.
    position = await primary.read({}, undefined, ({ connection }) => writtenPosition(connection));
  }
  const reached = await standby.read({}, undefined, ({ connection }) =>
    replayedPosition(connection, position),
  );
  if (reached.enough) return { state: { phase: 'open' }, wait_ms: 0, blocked_by: [] };
  return {
    state: { phase: 'replaying', position },
    wait_ms: options.pollMs,
    blocked_by: [
      `the standby, which has replayed the primary's log up to ${reached.at}, not yet to ${position}`,
    ],
  };
}

/**
 * The end of the last WAL record of the primary, including one that is not flushed yet. At a page boundary the server
 * reports the position after the page header, which a standby reaches only when a record follows.
 */
async function writtenPosition(connection: Connection): Promise<string> {
  const { rows } = await connection.query<{ position: string }>(
    `select (lsn - case
         when file_offset = 40 then 40
         when file_offset % current_setting('wal_block_size')::int = 24 then 24
         else 0 end)::text as position
     from pg_current_wal_insert_lsn() as lsn, pg_walfile_name_offset(lsn)`,
  );
  return rows[0]?.position ?? '';
}

/** The replay position of the standby. After a failover it may be a primary. */
async function replayedPosition(
  connection: Connection,
  position: string,
): Promise<{ readonly at: string; readonly enough: boolean }> {
  const { rows } = await connection.query<{ at: string | null; enough: boolean | null }>(
    `select at::text, at >= $1::pg_lsn as enough from (select case when pg_is_in_recovery()
       then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end as at) as reached`,
    [position],
  );
  return { at: rows[0]?.at ?? 'nowhere', enough: rows[0]?.enough ?? false };
}
