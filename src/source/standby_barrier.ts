/** The barrier of a standby: the primary settles it, and the standby replays what was written until then. */
import type { BarrierState, UnsettledBarrier } from '../domain/barrier.ts';
import { type BarrierOptions, checkBarrier, checkBarriers, type Connection, openBarrier } from './barrier.ts';
import type { BarrierCheck } from './source.ts';
import type { SourceConnections } from './source_connection.ts';

/** The connections of a source that is a standby. */
interface StandbyServers {
  readonly primary: SourceConnections;
  readonly standby: SourceConnections;
}

/**
 * Checks the barrier of a source that is a standby. First the barrier has to open on the primary, where rows are
 * written. Then the standby has to replay everything that the primary had written by then.
 */
export async function checkStandbyBarrier(
  servers: StandbyServers,
  cutoff: string,
  state: BarrierState,
  options: BarrierOptions,
): Promise<BarrierCheck> {
  const check =
    state.phase === 'replaying'
      ? waitForReplay(state.position, options)
      : await servers.primary.read({}, undefined, ({ connection }) =>
          checkBarrier(connection, cutoff, state, options),
        );
  const [result = check] = await checkReplay(servers, [check], options);
  return result;
}

/** Checks blocked barriers of a source that is a standby, with the same few statements as one. */
export async function checkStandbyBarriers(
  servers: StandbyServers,
  states: readonly UnsettledBarrier[],
  options: BarrierOptions,
): Promise<readonly BarrierCheck[]> {
  const onPrimary = await servers.primary.read({}, undefined, ({ connection }) =>
    checkBarriers(connection, states, options),
  );
  const checks = onPrimary.map((check, index) => {
    const state = states[index];
    return state?.phase === 'replaying' ? waitForReplay(state.position, options) : check;
  });
  return checkReplay(servers, checks, options);
}

const waitForReplay = (position: string, { pollMs }: BarrierOptions): BarrierCheck => ({
  state: { phase: 'replaying', position },
  wait_ms: pollMs,
  blocked_by: [],
});

/** Opens the barriers whose position the standby has replayed. Those that are open on the primary get a position first. */
async function checkReplay(
  { primary, standby }: StandbyServers,
  checks: readonly BarrierCheck[],
  options: BarrierOptions,
): Promise<readonly BarrierCheck[]> {
  let current = checks;
  if (current.some(({ state }) => state.phase === 'open')) {
    // Read in a transaction that starts after the last check, so that the position includes everything committed by
    // then.
    const position = await primary.read({}, undefined, ({ connection }) => writtenPosition(connection));
    current = current.map((check) =>
      check.state.phase === 'open' ? waitForReplay(position, options) : check,
    );
  }
  const positions = current.flatMap(({ state }) => (state.phase === 'replaying' ? [state.position] : []));
  if (positions.length === 0) return current;
  const { at, reached } = await standby.read({}, undefined, ({ connection }) =>
    replayedPositions(connection, [...new Set(positions)]),
  );
  return current.map((check) => {
    if (check.state.phase !== 'replaying') return check;
    const { position } = check.state;
    if (reached.has(position)) return openBarrier;
    return {
      ...check,
      blocked_by: [`the standby, which has replayed the primary's log up to ${at}, not yet to ${position}`],
    };
  });
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

/** The replay position of the standby, and which positions it has reached. After a failover it may be a primary. */
async function replayedPositions(
  connection: Connection,
  positions: readonly string[],
): Promise<{ readonly at: string; readonly reached: ReadonlySet<string> }> {
  const { rows } = await connection.query<{ at: string | null; reached: string[] }>(
    `select at::text, array(select position from unnest($1::text[]) as position where at >= position::pg_lsn) as reached
     from (select case when pg_is_in_recovery()
       then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end as at) as replayed`,
    [positions],
  );
  return { at: rows[0]?.at ?? 'nowhere', reached: new Set(rows[0]?.reached) };
}
