import type { BackfillRange } from '../domain/backfill.ts';
import type { FailureTime } from '../domain/errors.ts';
import type { DataInterval } from '../domain/intervals.ts';
import type { Connection, Pool } from '../journal/database.ts';
import { isFailedRun } from '../projections/runs.ts';
import type { NextInterval } from './next_run.ts';

/**
 * SQL: the newest runs of intervals of the export $1 at the time $3, if they failed at or after $2. Later runs do not
 * change it, so the intervals of a recovery stay the same while it runs.
 */
const failedRuns = `exportd.batch_export_runs run
  where run.batch_export_id = $1 and ${isFailedRun('run')}
    and run.finished_at >= coalesce($2, '-infinity'::timestamptz) and run.finished_at <= $3
    and not exists (
      select from exportd.batch_export_runs newer where newer.batch_export_id = $1
        and newer.data_interval_start = run.data_interval_start and newer.data_interval_end = run.data_interval_end
        and newer.position > run.position and newer.created_at <= $3)`;

const parametersOf = (batchExportId: string, { since, until }: FailureTime) => [batchExportId, since, until];

/** Finds the bounds and the number of the intervals whose newest run failed; undefined if there is none. */
export async function findFailedIntervals(
  connection: Connection,
  batchExportId: string,
  failed: FailureTime,
): Promise<BackfillRange | undefined> {
  const { rows } = await connection.query<{ intervals: number; start: string | null; end: string | null }>(
    `select count(*) as intervals, min(run.data_interval_start) as start, max(run.data_interval_end) as end
     from ${failedRuns}`,
    parametersOf(batchExportId, failed),
  );
  const { intervals = 0, start = null, end = null } = rows[0] ?? {};
  return start === null || end === null ? undefined : { intervals, start, end };
}

/** Finds the next of these intervals within a range, and its newest run if that was created since. */
export async function nextFailedInterval(
  connection: Connection,
  batchExportId: string,
  failed: FailureTime,
  range: DataInterval,
): Promise<NextInterval | undefined> {
  const { rows } = await connection.query<DataInterval & { run_id: string | null }>(
    `select failed.*, (
         select newer.id from exportd.batch_export_runs newer where newer.batch_export_id = $1
           and newer.data_interval_start = failed.start and newer.data_interval_end = failed.end
           and newer.created_at > $3
         order by newer.position desc limit 1) as run_id
     from (
       select run.data_interval_start as start, run.data_interval_end as end from ${failedRuns}
         and run.data_interval_start >= $4 and run.data_interval_start < $5
       order by run.data_interval_start limit 1) failed`,
    [...parametersOf(batchExportId, failed), range.start, range.end],
  );
  const [next] = rows;
  return next && { interval: { start: next.start, end: next.end }, run_id: next.run_id };
}

/**
 * Reads the live exports of a project that have failed runs since a time, or ever, and those whose command an earlier
 * request stored under their key.
 */
export async function readExportsToRetry(
  pool: Pool,
  teamId: number,
  { since, batchExportId }: { readonly since: string | null; readonly batchExportId: string | null },
  keyOf: (batchExportId: string) => string | undefined,
): Promise<string[]> {
  const { rows } = await pool.query<{ id: string; failed: boolean }>(
    `select export.id, exists (
         select from exportd.batch_export_runs run where run.batch_export_id = export.id and ${isFailedRun('run')}
           and run.finished_at >= coalesce($2, '-infinity'::timestamptz)) as failed
     from exportd.batch_exports export where export.team_id = $1 and not export.deleted and coalesce(export.id = $3, true)
     order by export.created_at, export.id`,
    [teamId, since, batchExportId],
  );
  const keys = new Map(rows.map(({ id }) => [id, keyOf(id)]));
  const stored = await pool.query<{ batch_export_id: string }>(
    'select batch_export_id from exportd.commands where team_id = $1 and idempotency_key = any($2)',
    [teamId, [...keys.values()].filter((key) => key !== undefined)],
  );
  const requested = new Set(stored.rows.map(({ batch_export_id }) => batch_export_id));
  return rows.filter(({ id, failed }) => failed || requested.has(id)).map(({ id }) => id);
}
