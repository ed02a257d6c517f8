/**
 * Which rows a person has decided to keep without the source. All that compare files with the source ask here; the README says
 * why.
 */
import {
  areComparable,
  bucketsOf,
  differingBuckets,
  encodeBuckets,
  type Fingerprint,
  type FingerprintBucket,
} from './fingerprint.ts';

/** The most rows of a decision that are known one by one. */
export const maxKnownRows = 10_000;

const hashBytes = 8;

/**
 * Encodes the hashes of rows, in the order of their buckets, as Base64: 8 bytes each, the highest first.
 * @returns null of more than `maxKnownRows`
 */
export function encodeHashes(hashes: readonly bigint[]): string | null {
  if (hashes.length > maxKnownRows) return null;
  const bytes = Buffer.allocUnsafe(hashes.length * hashBytes);
  for (const [position, hash] of hashes.entries())
    bytes.writeBigUInt64BE(BigInt.asUintN(64, hash), position * hashBytes);
  return bytes.toString('base64');
}

/** The hashes that `encodeHashes` has encoded. @throws RangeError when they are cut off */
export function decodeHashes(hashes: string): bigint[] {
  const bytes = Buffer.from(hashes, 'base64');
  return Array.from({ length: Math.ceil(bytes.length / hashBytes) }, (_, position) =>
    bytes.readBigUInt64BE(position * hashBytes),
  );
}

/** The hashes of each bucket of a fingerprint. */
function hashesByBucket(fingerprint: Fingerprint, hashes: string): ReadonlyMap<number, Set<bigint>> {
  const all = decodeHashes(hashes);
  let from = 0;
  return new Map(
    bucketsOf(fingerprint).map(({ index, rows }) => {
      const own = new Set(all.slice(from, from + rows));
      from += rows;
      return [index, own] as const;
    }),
  );
}

/** A row as fingerprints know it. */
export interface RowHash {
  /** The bucket of its interval. */
  readonly index: number;
  /** The hash of its id, without a sign. */
  readonly hash: bigint;
}

/** Reads what fingerprints do not tell. */
export interface KeptRowsReader {
  /** The hashes that the decision stores; null if it has none. */
  readonly hashes: () => Promise<string | null>;
  /** The rows that the source has in these buckets. */
  readonly sourceRows: (indexes: readonly number[]) => AsyncIterable<RowHash>;
}

/**
 * The kept rows that the source still lacks. A loss is decided if the source lacks exactly these. Where a bucket has some of
 * them again, or lacks others, the rows of the source say which; without their hashes, all of the bucket are expected to be lacking.
 * An id that the source still has once of two is back: in doubt, a loss is not decided.
 * @param kept the rows that were decided about
 * @param rows what files and source have; or what only the files have, and nothing
 */
export async function keptRows(
  kept: Fingerprint,
  { files, source }: { readonly files: Fingerprint; readonly source: Fingerprint },
  read: KeptRowsReader,
): Promise<Fingerprint> {
  if (!areComparable(files, kept)) return kept;
  const differing = new Map(differingBuckets(files, source).map((bucket) => [bucket.index, bucket]));
  const lacking = bucketsOf(kept).filter(({ index }) => differing.has(index));
  const unclear = lacking.filter((bucket) => !lacksExactly(differing.get(bucket.index), bucket));
  const hashes = unclear.length > 0 ? await read.hashes() : null;
  if (hashes === null) return { ...kept, encoded_buckets: encodeBuckets(lacking) };
  const left = hashesByBucket(kept, hashes);
  const indexes = unclear.map(({ index }) => index);
  for await (const { index, hash } of read.sourceRows(indexes)) left.get(index)?.delete(hash);
  const buckets = lacking.map((bucket) =>
    indexes.includes(bucket.index) ? bucketOfHashes(bucket.index, left.get(bucket.index)) : bucket,
  );
  return { ...kept, encoded_buckets: encodeBuckets(buckets) };
}

/** Whether the source lacks these rows of a bucket, and has all others. */
const lacksExactly = (
  bucket: ReturnType<typeof differingBuckets>[number] | undefined,
  { rows, sum }: FingerprintBucket,
): boolean =>
  (bucket?.one?.rows ?? 0) - (bucket?.other?.rows ?? 0) === rows &&
  BigInt.asUintN(64, BigInt(bucket?.one?.sum ?? 0) - BigInt(bucket?.other?.sum ?? 0)) === BigInt(sum);

const bucketOfHashes = (index: number, hashes: ReadonlySet<bigint> = new Set()): FingerprintBucket => ({
  index,
  rows: hashes.size,
  sum: BigInt.asUintN(
    64,
    [...hashes].reduce((sum, hash) => sum + hash, 0n),
  ).toString(),
});
