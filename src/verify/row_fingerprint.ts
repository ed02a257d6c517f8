import { bucketsOf, encodeBuckets, type Fingerprint, type FingerprintHash } from '../domain/fingerprint.ts';
import type { DataInterval } from '../domain/intervals.ts';
import type { RowKey } from '../readers/row.ts';
import { hashBytes, type Hash64 } from '../source/hash_bytes.ts';

/** The number of rows of a bucket of insertion time, and the sum of their hashes modulo 2^64. */
interface BucketSum {
  readonly rows: number;
  readonly sum: bigint;
}

/** The sums of the buckets that have rows, by index. */
export type BucketSums = ReadonlyMap<number, BucketSum>;

/** Adds sums of disjoint sets of rows, bucket by bucket. */
export function addSums(...all: readonly BucketSums[]): BucketSums {
  const total = new Map<number, BucketSum>();
  for (const sums of all)
    for (const [index, { rows, sum }] of sums) {
      const before = total.get(index) ?? { rows: 0, sum: 0n };
      total.set(index, { rows: before.rows + rows, sum: BigInt.asUintN(64, before.sum + sum) });
    }
  return total;
}

/** The sums in a fingerprint of a manifest. */
export const sumsOf = (fingerprint: Pick<Fingerprint, 'encoded_buckets'>): BucketSums =>
  new Map(bucketsOf(fingerprint).map(({ index, rows, sum }) => [index, { rows, sum: BigInt(sum) }]));

/** The fingerprint with these sums, of the same kind as another one. */
export const fingerprintOf = (sums: BucketSums, like: Fingerprint): Fingerprint => ({
  ...like,
  encoded_buckets: encodeBuckets(
    [...sums].map(([index, { rows, sum }]) => ({ index, rows, sum: sum.toString() })),
  ),
});

/** The sums that a statement returned: index, rows and sum as text. */
export const sumsOfRows = (rows: readonly (readonly (string | null)[])[]): BucketSums =>
  addSums(
    ...rows.map(
      ([index, count, sum]) => new Map([[Number(index), { rows: Number(count), sum: BigInt(sum ?? 0) }]]),
    ),
  );

/** The number of rows in all buckets. */
export const rowsOf = (sums: BucketSums): number =>
  [...sums.values()].reduce((total, { rows }) => total + rows, 0);

/** The indexes of the buckets that differ, in ascending order. */
export const differingIndexes = (one: BucketSums, other: BucketSums): number[] =>
  [...new Set([...one.keys(), ...other.keys()])]
    .filter(
      (index) =>
        one.get(index)?.rows !== other.get(index)?.rows || one.get(index)?.sum !== other.get(index)?.sum,
    )
    .toSorted((left, right) => left - right);

/** The index of the bucket that contains a time. */
export const bucketOf = (
  time: string,
  { start }: DataInterval,
  { width_ms }: Pick<Fingerprint, 'width_ms'>,
): number => Math.floor((Date.parse(time) - Date.parse(start)) / width_ms);

/** A row to be hashed: its bucket and its id. */
export interface HashedId {
  readonly bucket: number;
  readonly id: string;
}

/** Adds up the hashes of ids by bucket. */
export type HashIds = (hash: FingerprintHash, ids: readonly HashedId[]) => Promise<BucketSums>;

/** Computes the fingerprint of rows that are read. */
export interface RowFingerprint {
  add(row: RowKey): Promise<void>;
  sums(): Promise<BucketSums>;
}

/** Number of ids per statement. */
const batchSize = 20_000;

const uuidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The hash of an id: of a uuid that of fingerprints. */
export function hashOfId(id: string): bigint {
  const bytes = uuidPattern.test(id) ? Buffer.from(id.replaceAll('-', ''), 'hex') : Buffer.from(id);
  const hash: Hash64 = { high: 0, low: 0 };
  hashBytes(bytes, 0, bytes.length, hash);
  return (BigInt(hash.high) << 32n) | BigInt(hash.low);
}

/**
 * Creates the fingerprint of no rows yet. PostgreSQL computes the hashes, so that a bug in exportd's own cannot hide.
 * An id that is no uuid is left out, which makes the fingerprint differ.
 */
export function createRowFingerprint(
  hashIds: HashIds,
  interval: DataInterval,
  { hash, width_ms }: Pick<Fingerprint, 'hash' | 'width_ms'>,
): RowFingerprint {
  const isHashable = (id: string) => hash !== 'uuid_hash_extended/0' || uuidPattern.test(id);
  let ids: HashedId[] = [];
  let total: BucketSums = new Map();
  const hashAll = async () => {
    if (ids.length === 0) return;
    const batch = ids;
    ids = [];
    total = addSums(total, await hashIds(hash, batch));
  };
  return {
    async add({ inserted_at, id }) {
      if (isHashable(id)) ids.push({ bucket: bucketOf(inserted_at, interval, { width_ms }), id });
      if (ids.length >= batchSize) await hashAll();
    },
    async sums() {
      await hashAll();
      return total;
    },
  };
}
