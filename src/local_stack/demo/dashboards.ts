import { createDashboard } from '../../http/dashboards/dashboards.ts';
import type { Pool } from '../../journal/database.ts';

const dashboards = [
  {
    name: 'Product overview',
    description: 'Page views, sign-ups and purchases of the demo project',
    pinned: true,
    tags: ['demo'],
  },
  {
    name: 'Weekly report',
    description: 'Only collaborators can edit this dashboard',
    tags: ['demo', 'weekly'],
    restriction_level: 37,
  },
] as const;

/** Creates the demo dashboards unless the project ever had any: deleted ones are not created again. */
export async function ensureDemoDashboards(pool: Pool, userId: number, projectId: number): Promise<void> {
  const { rowCount } = await pool.query('select from exportd.dashboards where team_id = $1 limit 1', [
    projectId,
  ]);
  if (rowCount) return;
  for (const body of dashboards)
    await createDashboard(
      pool,
      { project_id: projectId, user_id: userId },
      { ...body, tags: [...body.tags] },
    );
}
