import type { Pool } from '../journal/database.ts';
import type { QueryProject } from './query_kind.ts';

/** A project's settings for queries and the database's time, of which all of one request is told the same. */
export async function readQueryProject(
  pool: Pool,
  teamId: number,
): Promise<{ readonly project: QueryProject; readonly now: Date }> {
  const { rows } = await pool.query<Omit<QueryProject, 'team_id'> & { now: string }>(
    `select timezone, week_start_day, test_account_filters, clock_timestamp() as now
     from exportd.projects where id = $1`,
    [teamId],
  );
  const [found] = rows;
  if (!found) throw new Error(`There is no project ${teamId}.`);
  const { now, ...settings } = found;
  return { project: { team_id: teamId, ...settings }, now: new Date(now) };
}
