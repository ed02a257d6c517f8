/** The order in which the runs of a project get the slots of workers. */
import { workerSilenceMs } from '../domain/condition_facts.ts';
import type { Pool } from '../journal/database.ts';
import { activeStatuses, waitsForSlot } from '../projections/runs.ts';

/** SQL condition: a run waits for its destination, which does not respond, or for the operator. */
const isInOutage = (run: string): string => `(exists (
    select from exportd.destination_configs config
    join exportd.destination_circuits circuit on circuit.destination = config.circuit and circuit.opened_at is not null
    where config.batch_export_id = ${run}.batch_export_id and config.version = ${run}.config_version)
  or exists (
    select from exportd.operator_fault_runs waiting where waiting.run_id = ${run}.id and waiting.resumed_at is null))`;

export type WaitingRuns = ReturnType<typeof createWaitingRuns>;

/** What the control database knows of the runs that wait for a slot. Without an answer a run waits for no other. */
export const createWaitingRuns = (pool: Pool, slots: number) => ({
  /**
   * Whether a scheduled run that has not begun comes after older ones of its project.
   * @param running the runs that have a slot of this worker
   */
  hasOlder: (runId: string, running: readonly string[]): Promise<boolean> =>
    hasOlderRuns(pool, runId, running, slots).catch(() => false),
  /** Whether a project that has none of these runs has one that may wait for a slot. */
  hasOtherProjects: (running: readonly string[]): Promise<boolean> =>
    hasRunsOfOthers(pool, running).catch(() => true),
});

/**
 * More runs of the project with an older interval wait for a slot than the other workers have slots: those that have a slot look
 * the same until they have read their first rows.
 */
async function hasOlderRuns(
  pool: Pool,
  runId: string,
  running: readonly string[],
  slots: number,
): Promise<boolean> {
  const { rows } = await pool.query<{ has_older: boolean }>(
    `with run as (
       select team_id, data_interval_end from exportd.batch_export_runs
       where id = $1 and status = 'Starting' and backfill_id is null
     ), others as (
       select greatest(coalesce(sum(export_slots), 0) - $3::integer, 0) as slots from exportd.worker_heartbeats
       where seen_at > clock_timestamp() - $4 * interval '1 millisecond'
     )
     select count(*) > (select slots from others) as has_older from (
       select from run join exportd.batch_export_runs older
         on older.team_id = run.team_id and older.data_interval_end < run.data_interval_end
       where ${waitsForSlot('older')} and older.backfill_id is null and older.id <> all($2::uuid[])
         and not ${isInOutage('older')}
       limit (select slots + 1 from others)) older`,
    [runId, running, slots, workerSilenceMs],
  );
  return rows[0]?.has_older === true;
}

async function hasRunsOfOthers(pool: Pool, running: readonly string[]): Promise<boolean> {
  const { rows } = await pool.query<{ has_others: boolean }>(
    `select exists (
       select from exportd.batch_export_runs run
       where run.status in (${activeStatuses}) and run.records_total_count is not null
         and run.team_id not in (select team_id from exportd.batch_export_runs where id = any($1::uuid[]))
     ) as has_others`,
    [running],
  );
  return rows[0]?.has_others === true;
}
