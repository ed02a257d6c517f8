import type { Connection, Pool } from '../../journal/database.ts';
import { userColumns } from '../accounts.ts';
import { notFound } from '../api_error.ts';
import type { Caller } from '../authentication.ts';
import type { DashboardResponse, DashboardDetailResponse } from '../schemas/dashboard.ts';

/** A user who reads the dashboards of a project. */
export type Viewer = Pick<Caller, 'project_id' | 'user_id'>;

/**
 * The dashboards of project $1 with the access of user $2. `access.level` and `effective.restriction` are computed only
 * here.
 */
const dashboardsWithAccess = `
  from exportd.dashboards dashboard
  join exportd.projects project on project.id = dashboard.team_id
  left join exportd.dashboard_access_controls own on own.dashboard_id = dashboard.id and own.user_id = $2
  cross join lateral (
    select greatest(dashboard.restriction_level, project.dashboard_restriction_level) as restriction) effective
  cross join lateral (
    select case
      when dashboard.created_by = $2 then 'manager'
      when own.access_level is not null then own.access_level
      when effective.restriction = 37 and dashboard.default_access_level in ('editor', 'manager') then 'viewer'
      else dashboard.default_access_level
    end as level) access
  where dashboard.team_id = $1`;

const dashboardColumns = `dashboard.id, dashboard.name, dashboard.description, dashboard.pinned, dashboard.created_at,
  (select to_jsonb(creator) from (select ${userColumns} from exportd.users where users.id = dashboard.created_by) creator)
    as created_by,
  dashboard.is_shared, dashboard.deleted, dashboard.creation_mode, dashboard.tags, dashboard.restriction_level`;

const viewerColumns = `effective.restriction as effective_restriction_level,
  case when access.level in ('editor', 'manager') then 37 else 21 end as effective_privilege_level,
  access.level as user_access_level`;

const accessColumns = `dashboard.default_access_level,
  coalesce((
    select jsonb_agg(jsonb_build_object('user', users.uuid, 'access_level', control.access_level) order by users.id)
    from exportd.dashboard_access_controls control join exportd.users on users.id = control.user_id
    where control.dashboard_id = dashboard.id), '[]') as access_controls`;

const listOrder = 'dashboard.pinned desc, lower(dashboard.name), dashboard.id';

const visibleDashboards = `${dashboardsWithAccess} and not dashboard.deleted and access.level <> 'none'`;

/** A page of the live dashboards that the viewer may see: pinned ones first, then by name, ignoring case. */
export async function listDashboards(
  pool: Pool,
  viewer: Viewer,
  window: { readonly limit: number; readonly offset: number },
): Promise<{ count: number; results: DashboardResponse[] }> {
  const values = [viewer.project_id, viewer.user_id];
  const counted = await pool.query<{ count: number }>(
    `select count(*) as count ${visibleDashboards}`,
    values,
  );
  const { rows } = await pool.query<DashboardResponse>(
    `select ${dashboardColumns}, ${viewerColumns} ${visibleDashboards} order by ${listOrder} limit $3 offset $4`,
    [...values, window.limit, window.offset],
  );
  return { count: counted.rows[0]?.count ?? 0, results: rows };
}

/** A dashboard of the project, also when deleted or not visible to the viewer. @throws ApiError 404 */
export async function readDashboard(
  database: Pool | Connection,
  viewer: Viewer,
  id: number,
): Promise<DashboardDetailResponse> {
  const { rows } = await database.query<DashboardDetailResponse>(
    `select ${dashboardColumns}, ${viewerColumns}, ${accessColumns} ${dashboardsWithAccess} and dashboard.id = $3`,
    [viewer.project_id, viewer.user_id, id],
  );
  const [found] = rows;
  if (!found) throw notFound();
  return found;
}

/** A live dashboard that the viewer may see. @throws ApiError 404 */
export async function requireDashboard(
  database: Pool | Connection,
  viewer: Viewer,
  id: number,
): Promise<DashboardDetailResponse> {
  const found = await readDashboard(database, viewer, id);
  if (found.deleted || found.user_access_level === 'none') throw notFound();
  return found;
}

/** A dashboard as stored, without the access of a particular user. */
export type StoredDashboard = { readonly project_id: number } & Omit<
  DashboardDetailResponse,
  'effective_restriction_level' | 'effective_privilege_level' | 'user_access_level'
>;

/** All live dashboards of a project, or of every project, for the operator. */
export const listStoredDashboards = async (
  pool: Pool,
  projectId: number | undefined,
): Promise<StoredDashboard[]> =>
  (
    await pool.query<StoredDashboard>(
      `select dashboard.team_id as project_id, ${dashboardColumns}, ${accessColumns} from exportd.dashboards dashboard
       where not dashboard.deleted and ($1::integer is null or dashboard.team_id = $1)
       order by dashboard.team_id, ${listOrder}`,
      [projectId],
    )
  ).rows;
