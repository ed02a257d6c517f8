import type { Pool } from '../journal/database.ts';

/** How the store of a location behaves, where stores differ; null is unknown. A destination test finds it out. */
export interface StoreTraits {
  /**
   * Whether it refuses a PUT of an existing key with `If-None-Match: *`. Null also if that has to be seen again: a day
   * after it was seen, at another server, or in a control database that was restored.
   */
  readonly conditional_put: boolean | null;
  /** The same when a multipart upload is completed. */
  readonly conditional_complete: boolean | null;
  /** Whether all parts of an upload but the last must have one size, as in Cloudflare R2. */
  readonly equal_parts: boolean | null;
  /** The response to reading a missing key: 404, or 403 without s3:ListBucket. */
  readonly missing_key: 'not_found' | 'denied' | null;
  /** Whether it refuses bytes that differ from the checksum sent with them. */
  readonly checksums: boolean | null;
  /** Whether the bucket keeps the versions of objects that are overwritten or deleted. */
  readonly versioned: boolean | null;
  /** Whether it refuses bytes without a checksum, as a bucket with object lock does. */
  readonly demands_checksums: boolean | null;
  /** What it calls itself in the response header `Server`. */
  readonly server: string | null;
}

/** The traits of a store that was never tested. */
export const unknownTraits: StoreTraits = {
  conditional_put: null,
  conditional_complete: null,
  equal_parts: null,
  missing_key: null,
  checksums: null,
  versioned: null,
  demands_checksums: null,
  server: null,
};

/**
 * A location's store (see `locationOf`), as one project knows it. All exports of the project to the location share what was
 * found; another project cannot write it, because the owner of a server decides what a test finds.
 */
export interface StoreOfProject {
  readonly team_id: number;
  readonly location: string;
}

/**
 * SQL: which control database this is. It differs after a restore, logical (another database or table) or physical (another
 * cluster or timeline): then the bucket may have objects that the journal does not know.
 */
const databaseIdentity = `(select concat_ws('/', (select system_identifier from pg_control_system()),
  (select timeline_id from pg_control_checkpoint()),
  (select oid from pg_database where datname = current_database()), 'exportd.store_traits'::regclass::oid))`;

/**
 * SQL: the traits of a store as JSON; null if it was never tested.
 * @param store parameters by number: the project, the location, and how many milliseconds it is trusted to refuse overwrites
 * after it was seen to
 */
export const traitsSql = (
  store: Readonly<Record<'team_id' | 'location' | 'checkIntervalMs', number>>,
): string =>
  `(select to_jsonb(found) from (
     select case when not conditional_put
         or (confirmed_at > clock_timestamp() - $${store.checkIntervalMs} * interval '1 millisecond' and confirmed_in = ${databaseIdentity})
         then conditional_put end as conditional_put,
       conditional_complete, equal_parts, missing_key, checksums, versioned, demands_checksums, server
     from exportd.store_traits where team_id = $${store.team_id} and location = $${store.location}) as found)`;

/** Reads the traits of a store. @param checkIntervalMs see `traitsSql` */
export async function readTraits(
  pool: Pool,
  { team_id, location }: StoreOfProject,
  checkIntervalMs: number,
): Promise<StoreTraits> {
  const { rows } = await pool.query<{ traits: StoreTraits | null }>(
    `select ${traitsSql({ team_id: 1, location: 2, checkIntervalMs: 3 })} as traits`,
    [team_id, location, checkIntervalMs],
  );
  return rows[0]?.traits ?? unknownTraits;
}

/**
 * Stores traits that a destination test or an export found. What is unknown keeps its stored value. Another server has to
 * show again that it refuses overwrites, unless that was found too.
 */
export async function storeTraits(
  pool: Pool,
  { team_id, location }: StoreOfProject,
  found: Partial<StoreTraits>,
): Promise<void> {
  const traits = { ...unknownTraits, ...found };
  await pool.query(
    `insert into exportd.store_traits as stored
       (team_id, location, conditional_put, conditional_complete, equal_parts, missing_key, checksums, versioned,
        demands_checksums, server, confirmed_at, confirmed_in)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
       case when $3 then clock_timestamp() end, case when $3 then ${databaseIdentity} end)
     on conflict (team_id, location) do update set
       conditional_put = coalesce(excluded.conditional_put, stored.conditional_put),
       conditional_complete = coalesce(excluded.conditional_complete, stored.conditional_complete),
       equal_parts = coalesce(excluded.equal_parts, stored.equal_parts),
       missing_key = coalesce(excluded.missing_key, stored.missing_key),
       checksums = coalesce(excluded.checksums, stored.checksums),
       versioned = coalesce(excluded.versioned, stored.versioned),
       demands_checksums = coalesce(excluded.demands_checksums, stored.demands_checksums),
       server = coalesce(excluded.server, stored.server),
       confirmed_at = coalesce(excluded.confirmed_at,
         case when stored.server is null or excluded.server is null or stored.server = excluded.server
           then stored.confirmed_at end),
       confirmed_in = coalesce(excluded.confirmed_in, stored.confirmed_in),
       found_at = clock_timestamp()`,
    [
      team_id,
      location,
      traits.conditional_put,
      traits.conditional_complete,
      traits.equal_parts,
      traits.missing_key,
      traits.checksums,
      traits.versioned,
      traits.demands_checksums,
      traits.server,
    ],
  );
}
