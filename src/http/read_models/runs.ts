import type { RunStatus } from '../../domain/run_state.ts';
import type { Connection, Pool } from '../../journal/database.ts';
import type { RunResponse } from '../schemas/run.ts';
import { describeWait, waitColumns, type WaitColumns } from './run_waits.ts';

/** Returns the URL of a run's workflow in the Temporal UI; null when no UI is configured. */
export type RunLink = (run: RunRow) => string | null;

/** A run as stored in the read model. */
export interface RunRow extends WaitColumns {
  readonly id: string;
  readonly position: number;
  readonly batch_export_id: string;
  readonly status: RunStatus;
  readonly records_completed: number;
  readonly records_total_count: number | null;
  readonly latest_error: string | null;
  readonly data_interval_start: string;
  readonly data_interval_end: string;
  readonly cursor: string | null;
  readonly created_at: string;
  readonly finished_at: string | null;
  readonly last_updated_at: string;
  readonly bytes: number;
  readonly files: number;
  readonly generation: number;
  readonly manifest_key: string | null;
  readonly backfill_id: string | null;
  readonly allow_shrink: boolean;
}

/** The columns of a `RunRow`, of exportd.batch_export_runs without an alias. */
export const runColumns = `id, position, batch_export_id, status, records_completed, records_total_count, latest_error,
  data_interval_start, data_interval_end, cursor, created_at, finished_at, last_updated_at, bytes, files, generation,
  manifest_key, backfill_id, allow_shrink, ${waitColumns('batch_export_runs')}`;

/** Converts a run to a response. */
export const toRunResponse = (run: RunRow, linkOf: RunLink): RunResponse => {
  const status_detail = describeWait(run);
  return {
    id: run.id,
    status: run.status,
    status_detail,
    records_completed: run.records_completed,
    latest_error: status_detail ?? run.latest_error,
    data_interval_start: run.data_interval_start,
    data_interval_end: run.data_interval_end,
    cursor: run.cursor,
    created_at: run.created_at,
    finished_at: run.finished_at,
    last_updated_at: run.last_updated_at,
    records_total_count: run.records_total_count,
    batch_export: run.batch_export_id,
    bytes: run.bytes,
    files: run.files,
    generation: run.generation === 0 ? null : run.generation,
    manifest_key: run.manifest_key,
    backfill_id: run.backfill_id,
    allow_shrink: run.allow_shrink,
    temporal_ui: linkOf(run),
  };
};

/** Finds a run of an export. */
export async function findRun(
  database: Pool | Connection,
  batchExportId: string,
  id: string,
): Promise<RunRow | undefined> {
  const { rows } = await database.query<RunRow>(
    `select ${runColumns} from exportd.batch_export_runs where batch_export_id = $1 and id = $2`,
    [batchExportId, id],
  );
  return rows[0];
}

/** The newest runs of each export, newest first. */
export async function latestRuns(
  pool: Pool,
  batchExportIds: readonly string[],
  perExport: number,
): Promise<RunRow[]> {
  const { rows } = await pool.query<RunRow>(
    `select newest.* from unnest($1::uuid[]) as export (id) cross join lateral (
       select ${runColumns} from exportd.batch_export_runs
       where batch_export_id = export.id order by position desc limit $2) newest
     order by newest.position desc`,
    [batchExportIds, perExport],
  );
  return rows;
}
