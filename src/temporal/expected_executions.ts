import { activeStatuses } from '../domain/run.ts';
import type { Pool } from '../journal/database.ts';

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

/** Backfills that have not ended. */
export const activeBackfills = (pool: Pool): Promise<string[]> =>
  ids(pool, 'select id from exportd.backfills where finished_at is null order by position', []);

/**
 * Those of the given runs that ended a while ago, longer than their execution takes to say so. The execution of one that
 * was handed over is the next run's as soon as it gets on.
 */
export async function endedRuns(
  pool: Pool,
  runIds: readonly string[],
): Promise<{ id: string; handed_over: boolean }[]> {
  const { rows } = await pool.query<{ id: string; handed_over: boolean }>(
    `select id, status = 'ContinuedAsNew' as handed_over from exportd.batch_export_runs where id::text = any($1)
     and finished_at < clock_timestamp() - interval '10 seconds'`,
    [runIds],
  );
  return rows;
}

async function ids(pool: Pool, statement: string, values: readonly unknown[]): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>(statement, [...values]);
  return rows.map(({ id }) => id);
}
