import { inTransaction, type Pool } from '../../journal/database.ts';
import type { Caller } from '../plugins/authentication.ts';
import { countRows } from '../paging.ts';
import type { AccessLevel, RestrictionLevel } from './access_levels.ts';
import type { DashboardResponse } from './schema.ts';
import { InvalidAccount } from '../accounts/invalid_account.ts';
import { userColumns } from '../accounts/users.ts';

/** A user who reads the dashboards of a project. */
type Viewer = Pick<Caller, 'project_id' | 'user_id'>;

/** The dashboards of project $1 that user $2 may see. `access.level` and `effective.restriction` are computed only here. */
const visibleDashboards = `
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
  where dashboard.team_id = $1 and access.level <> 'none'`;

const dashboardColumns = `dashboard.id, dashboard.name, dashboard.description, dashboard.pinned, dashboard.created_at,
  (select to_jsonb(creator) from (select ${userColumns} from exportd.users where users.id = dashboard.created_by) creator)
    as created_by,
  false as is_shared, false as deleted, 'default' as creation_mode, dashboard.tags, dashboard.restriction_level`;

const listOrder = 'dashboard.pinned desc, lower(dashboard.name), dashboard.id';

/** A page of the dashboards that the viewer may see: pinned ones first, then by name, ignoring case. */
export async function listDashboards(
  pool: Pool,
  viewer: Viewer,
  window: { readonly limit: number; readonly offset: number },
): Promise<{ count: number; results: DashboardResponse[] }> {
  const values = [viewer.project_id, viewer.user_id];
  const count = await countRows(pool, visibleDashboards, values);
  const { rows } = await pool.query<DashboardResponse>(
    `select ${dashboardColumns}, effective.restriction as effective_restriction_level,
       case when access.level in ('editor', 'manager') then 37 else 21 end as effective_privilege_level,
       access.level as user_access_level
     ${visibleDashboards} order by ${listOrder} limit $3 offset $4`,
    [...values, window.limit, window.offset],
  );
  return { count, results: rows };
}

/** A dashboard as stored, without the access of a particular user. */
export type StoredDashboard = Omit<
  DashboardResponse,
  'effective_restriction_level' | 'effective_privilege_level' | 'user_access_level'
> & {
  readonly project_id: number;
  readonly default_access_level: AccessLevel;
  readonly collaborators: readonly Collaborator[];
};

/** All dashboards of a project, or of every project, for the operator. */
export async function listStoredDashboards(
  pool: Pool,
  projectId: number | undefined,
): Promise<StoredDashboard[]> {
  const { rows } = await pool.query<StoredDashboard>(
    `select dashboard.team_id as project_id, ${dashboardColumns}, dashboard.default_access_level,
       coalesce((
         select jsonb_agg(jsonb_build_object('user_id', user_id, 'access_level', access_level) order by user_id)
         from exportd.dashboard_access_controls where dashboard_id = dashboard.id), '[]') as collaborators
     from exportd.dashboards dashboard where $1::integer is null or dashboard.team_id = $1
     order by dashboard.team_id, ${listOrder}`,
    [projectId],
  );
  return rows;
}

/** A user with an access level on a dashboard. */
export interface Collaborator {
  readonly user_id: number;
  readonly access_level: AccessLevel;
}

/** The fields of a new dashboard. What is missing has the default of its column. */
export interface NewDashboard {
  readonly name: string;
  readonly description?: string | undefined;
  readonly pinned?: boolean | undefined;
  readonly tags?: readonly string[] | undefined;
  readonly restriction_level?: RestrictionLevel | undefined;
  readonly default_access_level?: AccessLevel | undefined;
  /** Those of other users than the creator, who is always a manager. */
  readonly collaborators?: readonly Collaborator[] | undefined;
}

/** Trims, lower-cases, deduplicates and sorts tags, so that a tag has one spelling. */
const normalizeTags = (tags: readonly string[]): string[] =>
  [...new Set(tags.map((tag) => tag.trim().toLowerCase()).filter((tag) => tag !== ''))].sort();

/**
 * Creates a dashboard. @returns its id.
 * @throws InvalidAccount when the project or a user does not exist, or the name is blank
 */
export const createDashboard = (pool: Pool, creator: Viewer, given: NewDashboard): Promise<number> =>
  inTransaction(pool, async (connection) => {
    if (given.name.trim() === '') throw new InvalidAccount('The name of a dashboard may not be blank.');
    const { rows } = await connection.query<{ id: number }>(
      `insert into exportd.dashboards (team_id, created_by, name, description, pinned, tags, restriction_level,
         default_access_level)
       select projects.id, users.id, $3, $4, $5, $6, $7, $8 from exportd.projects, exportd.users
       where projects.id = $1 and users.id = $2 returning id`,
      [
        creator.project_id,
        creator.user_id,
        given.name.trim(),
        given.description ?? '',
        given.pinned ?? false,
        normalizeTags(given.tags ?? []),
        given.restriction_level ?? 21,
        given.default_access_level ?? 'editor',
      ],
    );
    const [stored] = rows;
    if (!stored)
      throw new InvalidAccount(`User ${creator.user_id} or project ${creator.project_id} does not exist.`);
    for (const { user_id, access_level } of given.collaborators ?? []) {
      const { rowCount } = await connection.query(
        `insert into exportd.dashboard_access_controls (dashboard_id, user_id, access_level)
         select $1, id, $3 from exportd.users where id = $2
         on conflict (dashboard_id, user_id) do update set access_level = excluded.access_level`,
        [stored.id, user_id, access_level],
      );
      if (rowCount === 0) throw new InvalidAccount(`User ${user_id} does not exist.`);
    }
    return stored.id;
  });
