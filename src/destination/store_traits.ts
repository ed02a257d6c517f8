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

/** Reads the traits of a location's store (see `locationOf`). All exports to the location share them. */
export async function readTraits(pool: Pool, location: string): Promise<StoreTraits> {
  const { rows } = await pool.query<StoreTraits>(
    `select conditional_put, conditional_complete, equal_parts, missing_key, checksums
     from exportd.store_traits where location = $1`,
    [location],
  );
  return rows[0] ?? unknownTraits;
}

/** Stores traits that a destination test or an export found. What is unknown keeps its stored value. */
export async function storeTraits(pool: Pool, location: string, found: Partial<StoreTraits>): Promise<void> {
  const { conditional_put, conditional_complete, equal_parts, missing_key, checksums } = {
    ...unknownTraits,
    ...found,
  };
  await pool.query(
    `insert into exportd.store_traits as stored
       (location, conditional_put, conditional_complete, equal_parts, missing_key, checksums)
     values ($1, $2, $3, $4, $5, $6)
     on conflict (location) do update set
       conditional_put = coalesce(excluded.conditional_put, stored.conditional_put),
       conditional_complete = coalesce(excluded.conditional_complete, stored.conditional_complete),
       equal_parts = coalesce(excluded.equal_parts, stored.equal_parts),
       missing_key = coalesce(excluded.missing_key, stored.missing_key),
       checksums = coalesce(excluded.checksums, stored.checksums),
       found_at = clock_timestamp()`,
    [location, conditional_put, conditional_complete, equal_parts, missing_key, checksums],
  );
}
