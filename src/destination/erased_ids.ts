import { createHash } from 'node:crypto';
import type { KeyRing, StoredSecret } from '../config/key_ring.ts';
import type { Connection, Pool } from '../journal/database.ts';
import type { RowSelection } from '../source/row_selection.ts';

/** What names an id in the journal and in certificates: who knows both ids can compute it, and nobody can look it up in a list. */
export const hashErasedId = (erasureId: string, distinctId: string): string =>
  createHash('sha256').update(`${erasureId}/${distinctId}`).digest('hex');

const locationOf = (teamId: number): string => `erased ids of project ${teamId}`;

/** Stores the ids of an erasure, sealed. From its commit on no step of an export of the project selects their rows. */
export async function storeErasedIds(
  connection: Connection,
  keyRing: KeyRing,
  erasure: { readonly id: string; readonly team_id: number; readonly distinct_ids: readonly string[] },
): Promise<void> {
  const { id, team_id, distinct_ids } = erasure;
  await connection.query(
    `insert into exportd.erased_ids (erasure_id, team_id, id_hash, sealed)
     select $1, $2, hash, sealed from unnest($3::text[], $4::text[]) as given (hash, sealed)`,
    [
      id,
      team_id,
      distinct_ids.map((distinctId) => hashErasedId(id, distinctId)),
      distinct_ids.map((distinctId) => keyRing.seal(distinctId, locationOf(team_id))),
    ],
  );
}

/** Reads the ids that a project, or one of its erasures, has erased. */
export type ReadErasedIds = (of: {
  readonly team_id: number;
  readonly erasure_id?: string;
}) => Promise<readonly string[]>;

/** Creates the function that reads erased ids. Only workers and operators' commands open them. It throws SecretUnreadable. */
export function createErasedIdReader(pool: Pool | Connection, keyRing: KeyRing): ReadErasedIds {
  // Each step of a run reads them.
  const opened = new Map<string, string>();
  return async ({ team_id, erasure_id = null }) => {
    const { rows } = await pool.query<{ sealed: string }>({
      name: 'read-erased-ids',
      text: 'select sealed from exportd.erased_ids where team_id = $1 and coalesce(erasure_id = $2, true)',
      values: [team_id, erasure_id],
    });
    return rows.map(({ sealed }) => {
      const known = opened.get(sealed) ?? keyRing.open(sealed, locationOf(team_id));
      opened.set(sealed, known);
      return known;
    });
  };
}

/** Leaves the rows of erased persons out of a selection, by hashes: servers cannot open the ids. */
export async function withoutErasedRows(
  pool: Pool,
  teamId: number,
  selection: RowSelection,
): Promise<RowSelection> {
  const { rows } = await pool.query<{ hashes: Record<string, string[]> | null }>(
    `select jsonb_object_agg(erasure_id, hashes) as hashes from (
       select erasure_id, jsonb_agg(id_hash) as hashes from exportd.erased_ids where team_id = $1 group by erasure_id
     ) erasure`,
    [teamId],
  );
  const except_hashes = rows[0]?.hashes;
  return except_hashes ? { ...selection, except_hashes } : selection;
}

/** Reads all erased ids as secrets. */
export async function listErasedIdSecrets(pool: Pool): Promise<StoredSecret[]> {
  const { rows } = await pool.query<{
    team_id: number;
    erasure_id: string;
    id_hash: string;
    sealed: string;
  }>('select team_id, erasure_id, id_hash, sealed from exportd.erased_ids order by erasure_id, id_hash');
  return rows.map(({ team_id, erasure_id, id_hash, sealed }) => ({
    owner: `a distinct id of erasure ${erasure_id} of project ${team_id}`,
    sealed,
    location: locationOf(team_id),
    replace: async (again) => {
      const { rowCount } = await pool.query(
        'update exportd.erased_ids set sealed = $4 where erasure_id = $1 and id_hash = $2 and sealed = $3',
        [erasure_id, id_hash, sealed, again],
      );
      return rowCount ?? 0;
    },
  }));
}
