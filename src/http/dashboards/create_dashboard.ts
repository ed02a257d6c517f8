import { inTransaction, type Pool } from '../../journal/database.ts';
import { InvalidAccount } from '../accounts.ts';
import type { Viewer } from '../read_models/dashboards.ts';
import type { CreateDashboardBody } from '../schemas/dashboard.ts';
import { resolveCollaborators, storeCollaborators } from './collaborators.ts';
import { newDefinition } from './dashboard_definition.ts';

/**
 * Creates a dashboard. @returns its id.
 * @throws InvalidAccount when the user or project does not exist; ApiError 400 for invalid collaborators.
 */
export const createDashboard = (pool: Pool, creator: Viewer, body: CreateDashboardBody): Promise<number> =>
  inTransaction(pool, async (connection) => {
    const definition = newDefinition(body);
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
