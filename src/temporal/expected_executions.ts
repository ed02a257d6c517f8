import { activeStatuses } from '../domain/run.ts';
import type { Pool } from '../journal/database.ts';
import { isId } from '../../workflows/messages.ts';

/** Commands that wait to be decided, in the order they were stored. */
export async function waitingCommands(
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

/** Runs that have not ended. */
export const activeRuns = (pool: Pool): Promise<string[]> =>
  ids(pool, 'select id from exportd.batch_export_runs where status = any($1) order by position', [
    activeStatuses,
  ]);

/** Whether a run has not ended. */
export const isActiveRun = async (pool: Pool, runId: string): Promise<boolean> =>
  (
    await ids(pool, 'select id from exportd.batch_export_runs where status = any($1) and id = $2', [
      activeStatuses,
      runId,
    ])
  ).length > 0;

/** Backfills that have not ended. */
export const activeBackfills = (pool: Pool): Promise<string[]> =>
  ids(pool, 'select id from exportd.backfills where finished_at is null order by position', []);

/**
 * Those of the given runs that ended a while ago, longer than their execution takes to say so. One that was handed over
 * is none of them: its execution is the next run's.
 */
export const endedRuns = (pool: Pool, runIds: readonly string[]): Promise<string[]> =>
  ids(
    pool,
    `select id from exportd.batch_export_runs where id = any($1::uuid[]) and status <> 'ContinuedAsNew'
     and finished_at < clock_timestamp() - interval '10 seconds'`,
    // A memo that was made by hand may name anything.
    [runIds.filter(isId)],
  );

async function ids(pool: Pool, statement: string, values: readonly unknown[]): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>(statement, [...values]);
  return rows.map(({ id }) => id);
}
