import type { FingerprintBucket } from '../../domain/fingerprint.ts';
import type { SortKey } from '../../domain/run.ts';
import { hashBytes, type Hash64 } from '../../source/postgresql_hash.ts';

/** The order of events in the source and in files. Times and uuids have a fixed format, so their text has their order. */
export function compareSortKeys(one: SortKey, other: SortKey): number {
  if (one.inserted_at !== other.inserted_at) return one.inserted_at < other.inserted_at ? -1 : 1;
  if (one.id === other.id) return 0;
  return one.id < other.id ? -1 : 1;
}

/** Merges the keys of a manifest and of the source, both in order. Memory holds one key of each. */
export async function mergeKeys(
  held: AsyncIterable<SortKey>,
  source: AsyncIterable<SortKey>,
  onKey: (key: SortKey) => void,
): Promise<number> {
  const keys = source[Symbol.asyncIterator]();
  const nextKey = async (): Promise<SortKey | undefined> => {
    const next = await keys.next();
    if (next.done) return undefined;
    onKey(next.value);
    return next.value;
  };
  let missing = 0;
  try {
    let key = await nextKey();
    for await (const heldKey of held) {
      while (key && compareSortKeys(key, heldKey) < 0) key = await nextKey();
      // Each key of the source accounts for one row of the manifest.
      if (key && compareSortKeys(key, heldKey) === 0) key = await nextKey();
      else missing += 1;
    }
    while (key) key = await nextKey();
  } finally {
    await keys.return?.();
  }
  return missing;
}

/** Adds up keys of events by bucket, like a fingerprint of their rows. */
export function createBucketSums(start: string, width_ms: number) {
  const startMs = new Date(start).getTime();
  const sums = new Map<number, { rows: number; sum: bigint }>();
  const hash: Hash64 = { high: 0, low: 0 };
  return {
    add: ({ inserted_at, id }: SortKey): void => {
      const index = Math.floor((Date.parse(inserted_at) - startMs) / width_ms);
      const bytes = Buffer.from(id.replaceAll('-', ''), 'hex');
      hashBytes(bytes, 0, bytes.length, hash);
      const bucket = sums.get(index) ?? { rows: 0, sum: 0n };
      bucket.rows += 1;
      bucket.sum += (BigInt(hash.high) << 32n) | BigInt(hash.low);
      sums.set(index, bucket);
    },
    /** The sums of the given buckets; those without keys have no rows. */
    bucketsAt: (indexes: readonly number[]): Map<number, FingerprintBucket> =>
      new Map(
        indexes.map((index) => {
          const { rows, sum } = sums.get(index) ?? { rows: 0, sum: 0n };
          return [index, { index, rows, sum: BigInt.asUintN(64, sum).toString() }];
        }),
      ),
  };
}
