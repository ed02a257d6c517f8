import { isId, type RunInterval } from '../../contract/workflow_ids.ts';
import { activeRunStatuses } from '../../domain/run_state.ts';
import type { Pool } from '../../journal/database.ts';

/** SQL condition: created so recently that Temporal may not list the execution yet, or nobody has started it. */
const isNew = `created_at > clock_timestamp() - interval '10 seconds'`;

/** The oldest pending command of each export, and whether it has been pending for longer than `oldAfterMs`. */
export async function pendingCommands(
  pool: Pool,
  oldAfterMs: number,
): Promise<{ batch_export_id: string; name: string; id: string; is_old: boolean }[]> {
  const { rows } = await pool.query<{ batch_export_id: string; name: string; id: string; is_old: boolean }>(
    `select distinct on (batch_export_id) batch_export_id, name, id,
       created_at < clock_timestamp() - make_interval(secs => $1::double precision / 1000) as is_old
     from exportd.commands where status = 'pending' order by batch_export_id, position`,
    [oldAfterMs],
  );
  return rows;
}

/** An item that should have an execution. */
interface ExpectedItem {
  readonly id: string;
  readonly is_new: boolean;
}

/** Exports whose schedule has to run. */
export async function liveExports(pool: Pool): Promise<ExpectedItem[]> {
  const { rows } = await pool.query<ExpectedItem>(
    `select id, ${isNew} as is_new from exportd.batch_exports where not deleted`,
  );
  return rows;
}

/** An item that records its progress. */
interface ProgressingItem extends ExpectedItem {
  /** Whether it has recorded something within the given time. */
  readonly is_progressing: boolean;
}

/** SQL condition: something was recorded within $1 milliseconds. */
const isProgressing =
  'last_updated_at > clock_timestamp() - make_interval(secs => $1::double precision / 1000)';

/** Runs without a terminal status. */
export async function activeRuns(pool: Pool, progressMs: number): Promise<(ProgressingItem & RunInterval)[]> {
  const { rows } = await pool.query<ProgressingItem & RunInterval>(
    `select id, batch_export_id, data_interval_start, data_interval_end, ${isNew} as is_new,
       ${isProgressing} as is_progressing
     from exportd.batch_export_runs where status = any($2)`,
    [progressMs, activeRunStatuses],
  );
  return rows;
}

/** Whether a run has no terminal status yet. */
export const isActiveRun = async (pool: Pool, runId: string): Promise<boolean> =>
  (
    await ids(pool, 'select id from exportd.batch_export_runs where status = any($1) and id = $2', [
      activeRunStatuses,
      runId,
    ])
  ).length > 0;

/** Backfills that have not ended. */
export async function activeBackfills(pool: Pool, progressMs: number): Promise<ProgressingItem[]> {
  const { rows } = await pool.query<ProgressingItem>(
    `select id, ${isNew} as is_new, ${isProgressing} as is_progressing
     from exportd.backfills where finished_at is null`,
    [progressMs],
  );
  return rows;
}

/**
 * Those of the given runs that ended more than 10 seconds ago, by when their executions should have closed. A run that
 * continued as new is excluded: its execution belongs to the next run.
 */
export const endedRuns = (pool: Pool, runIds: readonly string[]): Promise<string[]> =>
  ids(
    pool,
    `select id from exportd.batch_export_runs where id = any($1::uuid[]) and status <> 'ContinuedAsNew'
     and finished_at < clock_timestamp() - interval '10 seconds'`,
    // The memo of a manually started workflow may hold anything.
    [runIds.filter(isId)],
  );

async function ids(pool: Pool, statement: string, values: readonly unknown[]): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>(statement, [...values]);
  return rows.map(({ id }) => id);
}
