import type { Fingerprint, FingerprintHash } from '../domain/fingerprint.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { addSums, bucketOf, type BucketSums } from './bucket_sums.ts';
import type { RowKey } from './row.ts';

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
