import type { DataInterval } from '../domain/intervals.ts';
import type { Connection } from '../journal/database.ts';
import { activeStatuses } from '../projections/runs.ts';
import { latestEnds } from './auto_pause.ts';
import type { Policies } from './policies.ts';

/** SQL condition: the interval of a row has an active run. */
export const hasActiveRun = (row: string): string => `exists (
  select from exportd.batch_export_runs active
  where active.batch_export_id = ${row}.batch_export_id and active.data_interval_start = ${row}.data_interval_start
    and active.status in (${activeStatuses}))`;

/**
 * Returns the id of the interval's active run, or null. An interval has at most one. The statuses are no parameters: the index
 * of active runs would otherwise need a plan for each execution.
 */
export async function findActiveRun(
  connection: Connection,
  batchExportId: string,
  interval: DataInterval,
): Promise<string | null> {
  const { rows } = await connection.query<{ id: string }>(
    `select id from exportd.batch_export_runs where batch_export_id = $1 and data_interval_start = $2
     and data_interval_end = $3 and status in (${activeStatuses})`,
    [batchExportId, interval.start, interval.end],
  );
  return rows[0]?.id ?? null;
}

/** SQL: how many active runs take slots of the schedule of export $1. */
const countOfSchedule = `select count(*) as active from exportd.batch_export_runs
     where batch_export_id = $1 and status in (${activeStatuses}) and backfill_id is null`;

/**
 * The number of free slots of a schedule or a backfill. Automatic retries take a slot, and so do the runs of others that
 * a backfill waits for. The retries of a former repair take those of the current one. The caller holds the export's lock.
 */
export async function countFreeSlots(
  connection: Connection,
  policies: Policies,
  owner: { readonly batch_export_id: string; readonly backfill_id: string | null },
): Promise<number> {
  if (owner.backfill_id !== null) {
    const { batch_export_id, backfill_id } = owner;
    return (await countBackfillSlots(connection, policies, { batch_export_id, backfill_id }, null)).free;
  }
  const { rows } = await connection.query<{ active: number }>(countOfSchedule, [owner.batch_export_id]);
  return policies.maxConcurrentRuns - (rows[0]?.active ?? 0);
}

/** What a step of a schedule has to know of the runs of its export, of which most steps need no more. */
interface RunsOfSchedule {
  /** How many take its slots. */
  readonly active: number;
  /** Whether the last of its runs that Completed or Failed has Failed, as before each pause after repeated failures. */
  readonly last_failed: boolean;
  /** Whether a retry of any run is pending. */
  readonly has_retries: boolean;
}

/** Reads that of an export. The caller holds the export's lock. */
export async function readRunsOfSchedule(
  connection: Connection,
  batchExportId: string,
): Promise<RunsOfSchedule> {
  const { rows } = await connection.query<RunsOfSchedule>(
    `select (${countOfSchedule}) as active,
       coalesce((select status = 'Failed' from ${latestEnds('backfill_id is null')} limit 1), false) as last_failed,
       exists (select from exportd.batch_export_runs where batch_export_id = $1 and retry_at is not null) as has_retries`,
    [batchExportId],
  );
  const [row] = rows;
  if (!row) throw new RangeError('A statement without FROM returns one row.');
  return row;
}

/**
 * The free slots of a backfill, and how many automatic retries of its runs are due, which take the next ones.
 * @param now null: none is due
 */
export async function countBackfillSlots(
  connection: Connection,
  policies: Policies,
  { batch_export_id, backfill_id }: { readonly batch_export_id: string; readonly backfill_id: string },
  now: Date | null,
): Promise<{ readonly free: number; readonly due_retries: number }> {
  const { rows } = await connection.query<{ active: number; is_repair: boolean; due_retries: number }>(
    `select count(*) as active, ${isRepair('$2')} as is_repair, (
       select count(*) from exportd.batch_export_runs due where due.backfill_id = $2 and due.retry_at <= $3) as due_retries
     from exportd.batch_export_runs where batch_export_id = $1 and status in (${activeStatuses}) and (
       backfill_id = $2
       or id in (select run_id from exportd.backfill_runs waiting where waiting.backfill_id = $2 and status is null)
       or ${isRepair('$2')} and ${isRepair('batch_export_runs.backfill_id')})`,
    [batch_export_id, backfill_id, now],
  );
  const { active = 0, is_repair = false, due_retries = 0 } = rows[0] ?? {};
  const slots = is_repair ? policies.repairConcurrency : policies.backfillConcurrency;
  return { free: slots - active, due_retries };
}

/** SQL condition: a backfill is the repair of its export. @param backfillId an SQL expression */
const isRepair = (backfillId: string): string =>
  `exists (select from exportd.backfills owner where owner.id = ${backfillId} and owner.kind = 'repair')`;
