import type { Pool } from '../journal/database.ts';

/** How the store of a location behaves, where stores differ; null is unknown. A destination test finds it out. */
export interface StoreTraits {
  /** Whether it refuses a PUT of an existing key with `If-None-Match: *`. */
  readonly conditional_put: boolean | null;
  /** The same when a multipart upload is completed. */
  readonly conditional_complete: boolean | null;
  /** Whether all parts of an upload but the last must have one size, as in Cloudflare R2. */
  readonly equal_parts: boolean | null;
  /** The response to reading a missing key: 404, or 403 without s3:ListBucket. */
  readonly missing_key: 'not_found' | 'denied' | null;
  /** Whether it refuses bytes that differ from the checksum sent with them. */
  readonly checksums: boolean | null;
}

/** The traits of a store that was never tested. */
export const unknownTraits: StoreTraits = {
  conditional_put: null,
  conditional_complete: null,
  equal_parts: null,
  missing_key: null,
  checksums: null,
};

/**
 * A location's store (see `locationOf`), as one project knows it. All exports of the project to the location share what was
 * found; another project cannot write it, because the owner of a server decides what a test finds.
 */
export interface StoreOfProject {
  readonly team_id: number;
  readonly location: string;
}

/** Reads the traits of a store. */
export async function readTraits(pool: Pool, { team_id, location }: StoreOfProject): Promise<StoreTraits> {
  const { rows } = await pool.query<StoreTraits>(
    `select conditional_put, conditional_complete, equal_parts, missing_key, checksums
     from exportd.store_traits where team_id = $1 and location = $2`,
    [team_id, location],
  );
  return rows[0] ?? unknownTraits;
}

/** Stores traits that a destination test or an export found. What is unknown keeps its stored value. */
export async function storeTraits(
  pool: Pool,
  { team_id, location }: StoreOfProject,
  found: Partial<StoreTraits>,
): Promise<void> {
  const { conditional_put, conditional_complete, equal_parts, missing_key, checksums } = {
    ...unknownTraits,
    ...found,
  };
  await pool.query(
    `insert into exportd.store_traits as stored
       (team_id, location, conditional_put, conditional_complete, equal_parts, missing_key, checksums)
     values ($1, $2, $3, $4, $5, $6, $7)
     on conflict (team_id, location) do update set
       conditional_put = coalesce(excluded.conditional_put, stored.conditional_put),
       conditional_complete = coalesce(excluded.conditional_complete, stored.conditional_complete),
       equal_parts = coalesce(excluded.equal_parts, stored.equal_parts),
       missing_key = coalesce(excluded.missing_key, stored.missing_key),
       checksums = coalesce(excluded.checksums, stored.checksums),
       found_at = clock_timestamp()`,
    [team_id, location, conditional_put, conditional_complete, equal_parts, missing_key, checksums],
  );
}
