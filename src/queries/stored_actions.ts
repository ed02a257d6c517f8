import type { Pool } from '../journal/database.ts';
import type { ActionStep, ProjectAction } from './actions.ts';

/** An action as it is stored. */
export interface StoredAction extends ProjectAction {
  readonly team_id: number;
  readonly description: string;
  readonly created_at: string;
  readonly last_updated_at: string;
}

/** The fields of an action that can be set. */
export interface ActionFields {
  readonly name: string;
  readonly description: string;
  readonly steps: readonly ActionStep[];
}

/** Another action of the project has the name. */
export class ActionNameTaken extends Error {
  override readonly name = 'ActionNameTaken';
}

/** Every query of a project reads all of its actions. */
export const maxActions = 500;

const columns = 'id, team_id, name, description, steps, created_at, last_updated_at';
const uniqueViolation = '23505';

/** @throws ActionNameTaken */
async function changed(
  pool: Pool,
  statement: string,
  values: readonly unknown[],
): Promise<StoredAction | undefined> {
  try {
    const { rows } = await pool.query<StoredAction>(`${statement} returning ${columns}`, [...values]);
    return rows[0];
  } catch (error) {
    throw (error as { code?: unknown }).code === uniqueViolation ? new ActionNameTaken() : error;
  }
}

/** Creates an action; undefined if the project has the most that it can have. @throws ActionNameTaken */
export const createAction = (
  pool: Pool,
  teamId: number,
  { name, description, steps }: ActionFields,
): Promise<StoredAction | undefined> =>
  changed(
    pool,
    `insert into exportd.actions (team_id, name, description, steps)
     select $1::integer, $2, $3, $4::json where (select count(*) from exportd.actions where team_id = $1) < $5::integer`,
    [teamId, name, description, JSON.stringify(steps), maxActions],
  );

/** A page of the actions of a project by name, and how many it has. */
export async function listActions(
  pool: Pool,
  teamId: number,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): Promise<{ readonly count: number; readonly results: readonly StoredAction[] }> {
  const [listed, counted] = await Promise.all([
    pool.query<StoredAction>(
      `select ${columns} from exportd.actions where team_id = $1 order by lower(name), id limit $2 offset $3`,
      [teamId, limit, offset],
    ),
    pool.query<{ count: number }>('select count(*) as count from exportd.actions where team_id = $1', [
      teamId,
    ]),
  ]);
  return { count: counted.rows[0]?.count ?? 0, results: listed.rows };
}

/** An action of a project; undefined if the project has no such action. */
export const findStoredAction = async (
  pool: Pool,
  teamId: number,
  id: number,
): Promise<StoredAction | undefined> =>
  (
    await pool.query<StoredAction>(`select ${columns} from exportd.actions where team_id = $1 and id = $2`, [
      teamId,
      id,
    ])
  ).rows[0];

/** Changes fields of an action; undefined if the project has no such action. @throws ActionNameTaken */
export const updateAction = (
  pool: Pool,
  { team_id, id }: Pick<StoredAction, 'team_id' | 'id'>,
  { name, description, steps }: Partial<ActionFields>,
): Promise<StoredAction | undefined> =>
  changed(
    pool,
    `update exportd.actions set name = coalesce($3, name), description = coalesce($4, description),
       steps = coalesce($5::json, steps), last_updated_at = clock_timestamp()
     where team_id = $1 and id = $2`,
    [team_id, id, name ?? null, description ?? null, steps === undefined ? null : JSON.stringify(steps)],
  );

/** Deletes an action. Queries that use it fail from now on. Returns whether there was one. */
export async function deleteAction(
  pool: Pool,
  { team_id, id }: Pick<StoredAction, 'team_id' | 'id'>,
): Promise<boolean> {
  const { rowCount } = await pool.query('delete from exportd.actions where team_id = $1 and id = $2', [
    team_id,
    id,
  ]);
  return rowCount === 1;
}
