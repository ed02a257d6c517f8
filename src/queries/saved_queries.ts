import type { Pool } from '../journal/database.ts';

/** A query that a project has saved by name. */
export interface SavedQuery {
  readonly id: string;
  readonly name: string;
  /** As the query endpoint takes it: its `kind` and the fields of that kind. */
  readonly query: Readonly<Record<string, unknown>> & { readonly kind: string };
  /** Raised by each change. A change names the version that it is based on. */
  readonly version: number;
  readonly created_at: string;
  /** E-mail address; null when the user no longer exists. */
  readonly created_by: string | null;
  readonly last_updated_at: string;
  readonly last_updated_by: string | null;
}

/** What is saved, and who saves it. */
interface Saving extends Pick<SavedQuery, 'name' | 'query'> {
  readonly user_id: number;
}

/** A project has another query with this name. */
export class SavedQueryNameTaken extends Error {
  override readonly name = 'SavedQueryNameTaken';
}

/** A project has as many saved queries as it can have. */
export class TooManySavedQueries extends Error {
  override readonly name = 'TooManySavedQueries';
}

export const maxSavedQueries = 1_000;

const columns = `id, name, query, version, created_at,
  (select email from exportd.users where users.id = saved.created_by) as created_by, last_updated_at,
  (select email from exportd.users where users.id = saved.last_updated_by) as last_updated_by`;
const uniqueViolation = '23505';

/** Throws SavedQueryNameTaken for a name of another query. */
async function withUniqueName<Result>(change: Promise<Result>): Promise<Result> {
  try {
    return await change;
  } catch (error) {
    throw (error as { code?: unknown }).code === uniqueViolation ? new SavedQueryNameTaken() : error;
  }
}

/** Saves a new query. @throws SavedQueryNameTaken, TooManySavedQueries */
export async function createSavedQuery(
  pool: Pool,
  teamId: number,
  { name, query, user_id }: Saving,
): Promise<SavedQuery> {
  const { rows } = await withUniqueName(
    pool.query<SavedQuery>(
      `insert into exportd.saved_queries as saved (team_id, name, query, created_by, last_updated_by)
       select $1, $2, $3, $4, $4 where (select count(*) from exportd.saved_queries where team_id = $1) < $5
       returning ${columns}`,
      [teamId, name, JSON.stringify(query), user_id, maxSavedQueries],
    ),
  );
  const [saved] = rows;
  if (!saved) throw new TooManySavedQueries();
  return saved;
}

/**
 * Changes name or query of a version.
 * @returns undefined if the query is gone, or has another version by now
 * @throws SavedQueryNameTaken
 */
export async function updateSavedQuery(
  pool: Pool,
  { team_id, id, version }: { readonly team_id: number; readonly id: string; readonly version: number },
  { name, query, user_id }: Pick<Saving, 'user_id'> & Partial<Saving>,
): Promise<SavedQuery | undefined> {
  const { rows } = await withUniqueName(
    pool.query<SavedQuery>(
      `update exportd.saved_queries as saved set name = coalesce($4, name), query = coalesce($5, query),
         version = version + 1, last_updated_by = $6, last_updated_at = clock_timestamp()
       where team_id = $1 and id = $2 and version = $3 returning ${columns}`,
      [team_id, id, version, name ?? null, query === undefined ? null : JSON.stringify(query), user_id],
    ),
  );
  return rows[0];
}

/** A page of the saved queries of a project, by name; with `name` only the one that has it. */
export async function listSavedQueries(
  pool: Pool,
  teamId: number,
  {
    name,
    limit,
    offset,
  }: { readonly name?: string | undefined; readonly limit: number; readonly offset: number },
): Promise<{ readonly count: number; readonly results: SavedQuery[] }> {
  const ofProject = 'from exportd.saved_queries saved where team_id = $1 and ($2::text is null or name = $2)';
  const values = [teamId, name ?? null];
  const { rows: counted } = await pool.query<{ count: number }>(
    `select count(*) as count ${ofProject}`,
    values,
  );
  const { rows } = await pool.query<SavedQuery>(
    `select ${columns} ${ofProject} order by lower(name), name limit $3 offset $4`,
    [...values, limit, offset],
  );
  return { count: counted[0]?.count ?? 0, results: rows };
}

/** A saved query of a project by its id. */
export const findSavedQuery = async (
  pool: Pool,
  teamId: number,
  id: string,
): Promise<SavedQuery | undefined> =>
  (
    await pool.query<SavedQuery>(
      `select ${columns} from exportd.saved_queries saved where team_id = $1 and id = $2`,
      [teamId, id],
    )
  ).rows[0];

/** @returns false if there is no such query */
export async function deleteSavedQuery(pool: Pool, teamId: number, id: string): Promise<boolean> {
  const { rowCount } = await pool.query('delete from exportd.saved_queries where team_id = $1 and id = $2', [
    teamId,
    id,
  ]);
  return rowCount === 1;
}
