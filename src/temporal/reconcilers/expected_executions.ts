import { isId } from '../../contract/workflow_ids.ts';
import { activeRunStatuses } from '../../domain/run.ts';
import type { Pool } from '../../journal/database.ts';

/** Pending commands, oldest first; one pass takes 1,000 of them. */
export async function pendingCommands(
  pool: Pool,
): Promise<{ batch_export_id: string; name: string; id: string }[]> {
  const { rows } = await pool.query<{ batch_export_id: string; name: string; id: string }>(
    `select batch_export_id, name, id from exportd.commands where status = 'pending' order by position limit 1000`,
  );
  return rows;
}

/** Exports whose schedule has to run. */
export const liveExports = (pool: Pool): Promise<string[]> =>
  ids(pool, 'select id from exportd.batch_exports where not deleted order by created_at', []);

/** Runs without a terminal status. */
export const activeRuns = (pool: Pool): Promise<string[]> =>
  ids(pool, 'select id from exportd.batch_export_runs where status = any($1) order by position', [
    activeRunStatuses,
  ]);

/** Whether a run has no terminal status yet. */
export const isActiveRun = async (pool: Pool, runId: string): Promise<boolean> =>
  (
    await ids(pool, 'select id from exportd.batch_export_runs where status = any($1) and id = $2', [
      activeRunStatuses,
      runId,
    ])
  ).length > 0;

/** Backfills that have not ended. */
export const activeBackfills = (pool: Pool): Promise<string[]> =>
  ids(pool, 'select id from exportd.backfills where finished_at is null order by position', []);

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
