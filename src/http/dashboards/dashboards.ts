import { type Connection, inTransaction, type Pool } from '../../journal/database.ts';
import { InvalidAccount, userColumns } from '../accounts.ts';
import type { Caller } from '../authentication.ts';
import { invalid, notFound } from '../api_error.ts';
import { orDefault } from '../batch_exports/changes.ts';
import { countRows } from '../paging.ts';
import {
  type AccessLevel,
  defaultAccess,
  requireEditor,
  requireManager,
  type RestrictionLevel,
} from './access_levels.ts';
import type {
  AccessControlBody,
  CreateDashboardBody,
  DashboardDetailResponse,
  DashboardResponse,
  UpdateDashboardBody,
} from './schema.ts';

/** A user who reads the dashboards of a project. */
type Viewer = Pick<Caller, 'project_id' | 'user_id'>;

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
  const count = await countRows(pool, visibleDashboards, values);
  const { rows } = await pool.query<DashboardResponse>(
    `select ${dashboardColumns}, ${viewerColumns} ${visibleDashboards} order by ${listOrder} limit $3 offset $4`,
    [...values, window.limit, window.offset],
  );
  return { count, results: rows };
}

/** A dashboard of the project, also when deleted or not visible to the viewer. @throws ApiError 404 */
async function readDashboard(
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

/** A user with an access level on a dashboard. */
interface Collaborator {
  readonly user_id: number;
  readonly user: string;
  readonly access_level: AccessLevel;
}

/**
 * Finds the users that a body lists by id or uuid, sorted by id. Omits the creator, who is always a manager.
 * @throws ApiError 400 that names the entry, when its user is unknown, listed twice, or the creator at a lower level.
 */
async function resolveCollaborators(
  connection: Connection,
  entries: readonly AccessControlBody[],
  creatorId: number | null,
): Promise<Collaborator[]> {
  const ids = entries.flatMap(({ user }) => (typeof user === 'number' ? [user] : []));
  const uuids = entries.flatMap(({ user }) => (typeof user === 'string' ? [user.toLowerCase()] : []));
  const { rows } = await connection.query<{ id: number; uuid: string }>(
    'select id, uuid from exportd.users where id = any($1::integer[]) or uuid = any($2::uuid[])',
    [ids, uuids],
  );
  const collaborators = new Map<number, Collaborator>();
  entries.forEach((entry, index) => {
    const attr = `access_controls__${index}__user`;
    const wanted = typeof entry.user === 'string' ? entry.user.toLowerCase() : entry.user;
    const user = rows.find(({ id, uuid }) => id === wanted || uuid === wanted);
    if (!user) throw invalid('No user has this id or uuid.', attr);
    if (collaborators.has(user.id)) throw invalid('This user is listed twice.', attr);
    if (user.id === creatorId && entry.access_level !== 'manager')
      throw invalid('The creator of a dashboard is always a manager.', attr);
    collaborators.set(user.id, { user_id: user.id, user: user.uuid, access_level: entry.access_level });
  });
  return [...collaborators.values()]
    .filter(({ user_id }) => user_id !== creatorId)
    .sort((one, other) => one.user_id - other.user_id);
}

/** Replaces the collaborators of a dashboard. */
async function storeCollaborators(
  connection: Connection,
  dashboardId: number,
  collaborators: readonly Collaborator[],
): Promise<void> {
  await connection.query('delete from exportd.dashboard_access_controls where dashboard_id = $1', [
    dashboardId,
  ]);
  await connection.query(
    `insert into exportd.dashboard_access_controls (dashboard_id, user_id, access_level)
     select $1, user_id, access_level from unnest($2::integer[], $3::text[]) as named (user_id, access_level)`,
    [
      dashboardId,
      collaborators.map(({ user_id }) => user_id),
      collaborators.map(({ access_level }) => access_level),
    ],
  );
}

/** The writable fields of a dashboard, without its collaborators. */
interface DashboardDefinition {
  readonly name: string;
  readonly description: string;
  readonly pinned: boolean;
  readonly tags: readonly string[];
  readonly restriction_level: RestrictionLevel;
  readonly default_access_level: AccessLevel;
}

/** The value of a field that is omitted on creation or reset with null. */
const defaultDefinition: Omit<DashboardDefinition, 'name'> = {
  description: '',
  pinned: false,
  tags: [],
  ...defaultAccess,
};

/** Applies a body to a definition. An omitted field keeps its value; null resets it to its default. */
const definitionFrom = (
  base: DashboardDefinition,
  body: CreateDashboardBody | UpdateDashboardBody,
): DashboardDefinition => ({
  name: body.name ?? base.name,
  description: orDefault(body.description, base.description, defaultDefinition.description),
  pinned: orDefault(body.pinned, base.pinned, defaultDefinition.pinned),
  tags: body.tags === undefined ? base.tags : normalizeTags(body.tags ?? defaultDefinition.tags),
  restriction_level: orDefault(
    body.restriction_level,
    base.restriction_level,
    defaultDefinition.restriction_level,
  ),
  default_access_level: orDefault(
    body.default_access_level,
    base.default_access_level,
    defaultDefinition.default_access_level,
  ),
});

/** Trims, lower-cases, deduplicates and sorts tags, so that a tag has one spelling. */
const normalizeTags = (tags: readonly string[]): string[] =>
  [...new Set(tags.map((tag) => tag.trim().toLowerCase()))].sort();

/**
 * Creates a dashboard. @returns its id.
 * @throws InvalidAccount when the user or project does not exist; ApiError 400 for invalid collaborators.
 */
export const createDashboard = (pool: Pool, creator: Viewer, body: CreateDashboardBody): Promise<number> =>
  inTransaction(pool, async (connection) => {
    const definition = definitionFrom({ ...defaultDefinition, name: body.name }, body);
    const { rows } = await connection.query<{ id: number }>(
      `insert into exportd.dashboards (team_id, created_by, name, description, pinned, tags, restriction_level,
         default_access_level)
       select projects.id, users.id, $3, $4, $5, $6, $7, $8 from exportd.projects, exportd.users
       where projects.id = $1 and users.id = $2 returning id`,
      [
        creator.project_id,
        creator.user_id,
        definition.name,
        definition.description,
        definition.pinned,
        definition.tags,
        definition.restriction_level,
        definition.default_access_level,
      ],
    );
    const [stored] = rows;
    if (!stored)
      throw new InvalidAccount(`User ${creator.user_id} or project ${creator.project_id} does not exist.`);
    const collaborators = await resolveCollaborators(connection, body.access_controls ?? [], creator.user_id);
    await storeCollaborators(connection, stored.id, collaborators);
    return stored.id;
  });

/**
 * Updates a dashboard on behalf of a user. A deleted dashboard is found only with `deleted: false`, which restores it.
 * Fields that repeat the current value are not changes, so an editor can send a response back.
 * @returns the dashboard as this user now sees it.
 * @throws ApiError 404; 403 when the user may not make the change; 400 for invalid collaborators.
 */
export const updateDashboard = (
  pool: Pool,
  viewer: Viewer,
  id: number,
  body: UpdateDashboardBody,
): Promise<DashboardDetailResponse> =>
  inTransaction(pool, async (connection) => {
    const current = await lockForEdit(connection, viewer, id, { includeDeleted: body.deleted === false });
    const definition = definitionFrom(current, body);
    for (const field of ['restriction_level', 'default_access_level'] as const)
      if (definition[field] !== current[field]) requireManager(current, field);
    if (body.access_controls !== undefined) {
      const entries = body.access_controls ?? [];
      const collaborators = await resolveCollaborators(connection, entries, current.created_by?.id ?? null);
      if (!isSameAs(collaborators, current)) {
        requireManager(current, 'access_controls');
        await storeCollaborators(connection, id, collaborators);
      }
    }
    await connection.query(
      `update exportd.dashboards set name = $2, description = $3, pinned = $4, tags = $5, restriction_level = $6,
         default_access_level = $7, deleted = $8 where id = $1`,
      [
        id,
        definition.name,
        definition.description,
        definition.pinned,
        definition.tags,
        definition.restriction_level,
        definition.default_access_level,
        body.deleted ?? current.deleted,
      ],
    );
    return readDashboard(connection, viewer, id);
  });

/** Deletes a dashboard on behalf of a user, keeping its row. @throws ApiError 404; 403 when the user may not edit it. */
export const deleteDashboard = (pool: Pool, viewer: Viewer, id: number): Promise<void> =>
  inTransaction(pool, async (connection) => {
    await lockForEdit(connection, viewer, id, { includeDeleted: false });
    await connection.query('update exportd.dashboards set deleted = true where id = $1', [id]);
  });

/** Reads the dashboard and checks that the user may edit it. Locks both against changes until the transaction ends. */
async function lockForEdit(
  connection: Connection,
  viewer: Viewer,
  id: number,
  { includeDeleted }: { readonly includeDeleted: boolean },
): Promise<DashboardDetailResponse> {
  // A separate statement, so that the next one reads what the previous lock holder committed.
  await connection.query('select from exportd.dashboards where id = $1 and team_id = $2 for update', [
    id,
    viewer.project_id,
  ]);
  const current = await readDashboard(connection, viewer, id);
  if ((current.deleted && !includeDeleted) || current.user_access_level === 'none') throw notFound();
  requireEditor(current);
  return current;
}

const isSameAs = (
  collaborators: readonly Collaborator[],
  { access_controls }: DashboardDetailResponse,
): boolean =>
  collaborators.length === access_controls.length &&
  collaborators.every(({ user, access_level }) =>
    access_controls.some((control) => control.user === user && control.access_level === access_level),
  );
