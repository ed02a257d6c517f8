import { inTransaction, type Connection, type Pool } from '../../journal/database.ts';
import { notFound } from '../api_error.ts';
import { readDashboard, type Viewer } from '../read_models/dashboards.ts';
import type { DashboardDetailResponse, UpdateDashboardBody } from '../schemas/dashboard.ts';
import { requireEditor, requireManager } from './access_levels.ts';
import { resolveCollaborators, storeCollaborators, type Collaborator } from './collaborators.ts';
import { definitionFrom } from './dashboard_definition.ts';

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
