import type { Pool } from '../journal/database.ts';
import type { QueryProject } from './query_kind.ts';

/** Reads a project's query settings and the database's time, which is `now` for the whole request. */
export async function readQueryProject(
  pool: Pool,
  teamId: number,
): Promise<{ readonly project: QueryProject; readonly now: Date }> {
  const { rows } = await pool.query<Omit<QueryProject, 'team_id'> & { now: string }>(
    `select timezone, week_start_day, test_account_filters, clock_timestamp() as now,
       (select coalesce(json_agg(json_build_object('name', name, 'relation_schema', relation_schema,
          'relation_name', relation_name, 'team_column', team_column) order by name), '[]')
        from exportd.warehouse_tables where team_id = $1) as warehouse_tables,
       (select coalesce(json_agg(json_build_object('scope', scope, 'name', name, 'type', type) order by scope, name), '[]')
        from exportd.property_definitions where team_id = $1) as property_definitions
     from exportd.projects where id = $1`,
    [teamId],
  );
  const [found] = rows;
  if (!found) throw new Error(`Project ${teamId} does not exist.`);
  const { now, ...settings } = found;
  return { project: { team_id: teamId, ...settings }, now: new Date(now) };
}
