import type { Connection } from '../../journal/database.ts';
import { invalid } from '../api_error.ts';
import type { AccessControlBody } from '../schemas/dashboard.ts';
import type { AccessLevel } from './access_levels.ts';

/** A user with an access level on a dashboard. */
export interface Collaborator {
  readonly user_id: number;
  readonly user: string;
  readonly access_level: AccessLevel;
}

/**
 * Finds the users that a body lists by id or uuid, sorted by id. Omits the creator, who is always a manager.
 * @throws ApiError 400 that names the entry, when its user is unknown, listed twice, or the creator at a lower level.
 */
export async function resolveCollaborators(
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
export async function storeCollaborators(
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
