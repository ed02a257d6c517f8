import type { Pool } from '../../src/journal/database.ts';
import type { Model } from '../../src/domain/batch_export.ts';
import type { RunStatus } from '../../src/domain/run_state.ts';

/** A run as its read model has it. */
export interface ReadRun {
  readonly id: string;
  readonly team_id: number;
  readonly batch_export_id: string;
  readonly backfill_id: string | null;
  readonly status: RunStatus;
  readonly data_interval_start: string;
  readonly data_interval_end: string;
  readonly model: Model;
  readonly config_version: number;
  readonly generation: number;
  readonly manifest_key: string | null;
  readonly records_completed: number;
  readonly records_total_count: number | null;
  readonly cursor: string | null;
  readonly latest_error: string | null;
  readonly retry_number: number;
  readonly retry_at: string | null;
  readonly cancel_requested: boolean;
  readonly created_at: string;
  readonly finished_at: string | null;
}

/** Reads the runs of an export or of a backfill in the order of their creation. The only place of these tests that knows the table. */
export async function readRuns(
  pool: Pool,
  of: { readonly batch_export_id: string } | { readonly backfill_id: string },
): Promise<ReadRun[]> {
  const [[column, id] = []] = Object.entries(of);
  const { rows } = await pool.query<ReadRun>(
    `select * from exportd.batch_export_runs where ${String(column)} = $1 order by position`,
    [id],
  );
  return rows;
}

/** Reads a run by its id. */
export async function readRun(pool: Pool, id: string): Promise<ReadRun> {
  const { rows } = await pool.query<ReadRun>('select * from exportd.batch_export_runs where id = $1', [id]);
  const [run] = rows;
  if (!run) throw new Error(`The run ${id} does not exist.`);
  return run;
}
