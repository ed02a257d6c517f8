import { createHash } from 'node:crypto';
import {
  type KeyRing,
  type SecretRotation,
  SecretUnreadable,
  type StoredSecret,
} from '../config/key_ring.ts';
import type { Connection, Pool } from '../journal/database.ts';

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

interface SealedId {
  readonly team_id: number;
  readonly erasure_id: string;
  readonly id_hash: string;
  readonly sealed: string;
}

const readSealedIds = async (pool: Pool): Promise<readonly SealedId[]> =>
  (
    await pool.query<SealedId>(
      'select team_id, erasure_id, id_hash, sealed from exportd.erased_ids order by erasure_id, id_hash',
    )
  ).rows;

const ownerOf = ({ erasure_id, team_id }: SealedId): string =>
  `a distinct id of erasure ${erasure_id} of project ${team_id}`;

/** Reads all erased ids as secrets. */
export const listErasedIdSecrets = async (pool: Pool): Promise<StoredSecret[]> =>
  (await readSealedIds(pool)).map((row) => ({
    owner: ownerOf(row),
    sealed: row.sealed,
    location: locationOf(row.team_id),
  }));

/** Encrypts all erased ids under the first key of the ring. */
export async function rotateErasedIds(pool: Pool, keyRing: KeyRing): Promise<SecretRotation> {
  let rotated = 0;
  const unreadable: string[] = [];
  for (const row of await readSealedIds(pool)) {
    const { team_id, erasure_id, id_hash, sealed } = row;
    if (sealed.startsWith(`${keyRing.keyId}:`)) continue;
    try {
      const again = keyRing.seal(keyRing.open(sealed, locationOf(team_id)), locationOf(team_id));
      await pool.query(
        'update exportd.erased_ids set sealed = $4 where erasure_id = $1 and id_hash = $2 and sealed = $3',
        [erasure_id, id_hash, sealed, again],
      );
      rotated += 1;
    } catch (error) {
      if (!(error instanceof SecretUnreadable)) throw error;
      unreadable.push(`${ownerOf(row)}: ${error.message}`);
    }
  }
  return { rotated, unreadable };
}
