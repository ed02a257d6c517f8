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

/** The rows of a fingerprint statement, in any order; one row with nulls if the interval has no rows. */
export interface FingerprintRow {
  readonly known: string;
  readonly index: number | null;
  readonly rows: string | null;
  readonly sum: string | null;
}

/**
 * Counts rows and adds up the hashes of their ids by bucket. With the rows it returns a known value of the hash: a
 * pooler may connect each transaction to another server.
 * @param rows a select of `inserted_at` and `hash`
 */
export const fingerprintStatement = (hash: FingerprintHash, rows: string): string => `
  select known.hash as known, (extract(epoch from bucket.start - ${origin}) * 1000 / ${width})::int as index,
    bucket.rows, bucket.sum
  from (select ${knownHashes[hash].sql} as hash) as known left join (
    select date_bin((select ${width} * interval '1 millisecond'), inserted_at, (select ${origin})) as start,
      count(*) as rows, sum(hash) as sum
    from (${rows}) as row group by 1
  ) as bucket on true`;

const origin = parameter('origin', 'timestamptz');
const width = parameter('bucket_ms', 'bigint');

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
