import type { Fingerprint, FingerprintHash } from '../domain/fingerprint.ts';
import { parameter } from './model_query.ts';

/** The source computes another hash than exportd, so that its fingerprints and those of files cannot be compared. */
export class FingerprintHashDiffers extends Error {
  override readonly name = 'FingerprintHashDiffers';
}

/** A known value of each hash. */
const knownHashes: Readonly<Record<FingerprintHash, { readonly sql: string; readonly value: string }>> = {
  'uuid_hash_extended/0': {
    sql: `uuid_hash_extended('018f3d9c-5a7b-7c21-9e4d-0123456789ab'::uuid, 0)`,
    value: '-2441515694648303869',
  },
  'hashtextextended/0': {
    sql: `hashtextextended('a distinct id of 27 letters' collate "C", 0)`,
    value: '1237062266297986927',
  },
};

/**
 * Settings of the statements. Scans of the index alone need no order of the table's pages, so no bitmap. Sorting would put
 * all rows on disk: the planner expects about as many groups as rows.
 */
export const fingerprintSettings: Readonly<Record<FingerprintHash, Readonly<Record<string, string>>>> = {
  'uuid_hash_extended/0': { enable_bitmapscan: 'off' },
  'hashtextextended/0': { enable_sort: 'off' },
};

/** The rows of a fingerprint statement, in any order; one row with nulls if the interval has no rows. */
export interface FingerprintRow {
  readonly known: string;
  readonly index: number | null;
  readonly rows: string | null;
  readonly sum: string | null;
}

/** A range of insertion time as SQL expressions; `end` is exclusive. */
export interface TimeBounds {
  readonly start: string;
  readonly end: string;
}

const [start, end] = [parameter('start', 'timestamptz'), parameter('end', 'timestamptz')];
const origin = parameter('origin', 'timestamptz');
const width = parameter('bucket_ms', 'bigint');

/** The number of the bucket that contains an instant, or whose start it is. */
const bucketAt = (time: string): string => `extract(epoch from ${time} - ${origin}) * 1000 / ${width}`;

/**
 * Counts rows and adds up the hashes of their ids by bucket, each bucket with its own scan of the index on the insertion
 * time. That takes half the time of grouping the rows, because no row's bucket is computed.
 * @param rowsWithin `from` and `where` of the rows within bounds
 */
export const fingerprintByScans = (
  hash: FingerprintHash,
  id: string,
  rowsWithin: (bounds: TimeBounds) => string,
): string => {
  const startOf = (index: string) => `${origin} + (${index} * ${width}) * interval '1 millisecond'`;
  // OFFSET keeps the bounds from being computed again for each partition. EXISTS makes an empty interval cheap.
  return withKnownHash(
    hash,
    `select index, counted.rows, counted.sum
     from (
       select index, greatest(${start}, ${startOf('index')}) as start, least(${end}, ${startOf('(index + 1)')}) as end
       from generate_series(floor(${bucketAt(start)})::bigint, ceil(${bucketAt(end)})::bigint - 1) as index offset 0
     ) as bounds,
     lateral (select count(*) as rows, sum(${hashOf(hash, id)}) as sum ${rowsWithin({ start: 'bounds.start', end: 'bounds.end' })}) as counted
     where counted.rows > 0 and (select exists (select ${rowsWithin({ start, end })}))`,
  );
};

/**
 * Counts rows and adds up the hashes of their ids by bucket, in one pass over all rows.
 * @param rows a select of `inserted_at` and `id`
 */
export const fingerprintByGroups = (hash: FingerprintHash, rows: string): string =>
  withKnownHash(
    hash,
    `select (${bucketAt('start')})::bigint as index, rows, sum from (
       select date_bin((select ${width} * interval '1 millisecond'), inserted_at, (select ${origin})) as start,
         count(*) as rows, sum(${hashOf(hash, 'id')}) as sum
       from (${rows}) as row group by 1) as grouped`,
  );

const hashOf = (hash: FingerprintHash, id: string): string =>
  hash === 'uuid_hash_extended/0' ? `uuid_hash_extended(${id}, 0)` : `hashtextextended(${id}, 0)`;

/** Adds a known value of the hash to the rows: a pooler may connect each transaction to another server. */
const withKnownHash = (hash: FingerprintHash, buckets: string): string => `
  select known.hash as known, bucket.index::int as index, bucket.rows, bucket.sum
  from (select ${knownHashes[hash].sql} as hash) as known left join (${buckets}) as bucket on true`;

/**
 * Converts the result of a fingerprint statement.
 * @throws FingerprintHashDiffers
 */
export function fingerprintOf(
  rows: readonly FingerprintRow[],
  { hash, width_ms }: Pick<Fingerprint, 'hash' | 'width_ms'>,
): Fingerprint {
  const [first] = rows;
  if (first?.known !== knownHashes[hash].value)
    throw new FingerprintHashDiffers(
      `The source computes ${hash} differently: ${knownHashes[hash].sql} is ${first?.known}, expected ${knownHashes[hash].value}. exportd needs PostgreSQL on a little-endian processor.`,
    );
  const buckets = rows.flatMap(({ index, rows: count, sum }) =>
    index === null
      ? []
      : [{ index, rows: Number(count), sum: BigInt.asUintN(64, BigInt(sum ?? '0')).toString() }],
  );
  return { hash, width_ms, buckets: buckets.toSorted((one, other) => one.index - other.index) };
}
