import { bucketInterval, type Fingerprint, type FingerprintHash } from '../domain/fingerprint.ts';
import type { SortKey } from '../domain/run.ts';
import type { RowRange, Source } from '../source/source.ts';

/** A cut before a bucket, or several inside one that has more rows than a range. */
export type PlannedCut =
  | { readonly before: number }
  | {
      readonly inside: number;
      /** After how many rows each. */
      readonly every: number;
    };

/** A bucket with up to this many times the rows of a range becomes one, because cutting it means to read its rows. */
const bucketTolerance = 1.5;

/** Plans where to cut an interval into ranges of about `every` rows, mostly between the buckets of its fingerprint. */
export function planCuts({ buckets }: Pick<Fingerprint, 'buckets'>, every: number): PlannedCut[] {
  const cuts: PlannedCut[] = [];
  let rowsInRange = 0;
  for (const { index, rows } of buckets) {
    if (rowsInRange > 0 && rowsInRange + rows > every) {
      cuts.push({ before: index });
      rowsInRange = 0;
    }
    const subranges = rowsInRange === 0 && rows > bucketTolerance * every ? Math.ceil(rows / every) : 1;
    if (subranges > 1) cuts.push({ inside: index, every: Math.ceil(rows / subranges) });
    // The last subrange ends with its bucket, so that the next range starts with the next bucket.
    rowsInRange += rows;
  }
  return cuts;
}

/**
 * Keys that split a range into key ranges of about `every` rows. Only a bucket with more rows than a range is read for
 * it, so a large interval is split at once.
 */
export async function splitInterval(
  source: Pick<Source, 'splitKeys'>,
  range: RowRange,
  fingerprint: Fingerprint,
  every: number,
  signal: AbortSignal,
): Promise<readonly SortKey[]> {
  // The buckets do not have the selected rows.
  if (fingerprint.all_events) return source.splitKeys(range, every, signal);
  const keys: SortKey[] = [];
  for (const cut of planCuts(fingerprint, every)) {
    if ('before' in cut) {
      const { start } = bucketInterval(range.interval, fingerprint, cut.before);
      keys.push(firstKeyAt(start, fingerprint.hash));
    } else {
      const interval = bucketInterval(range.interval, fingerprint, cut.inside);
      keys.push(...(await source.splitKeys({ ...range, interval }, cut.every, signal)));
    }
  }
  return keys;
}

/** A key that precedes the rows of an instant, except one with the lowest id there is. */
const firstKeyAt = (time: string, hash: FingerprintHash): SortKey => ({
  inserted_at: new Date(time).toISOString().replace('Z', '000Z'),
  id: lowestIds[hash],
});

const lowestIds: Readonly<Record<FingerprintHash, string>> = {
  'uuid_hash_extended/0': '00000000-0000-0000-0000-000000000000',
  'hashtextextended/0': '',
};
