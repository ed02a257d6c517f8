import { bucketInterval, type Fingerprint, type FingerprintHash } from '../domain/fingerprint.ts';
import type { Settings } from '../config/settings.ts';
import type { SortKey } from '../domain/run.ts';
import type { RowRange, Source } from '../source/source.ts';

/** How an interval is split. */
export interface RangeSize {
  /** About how many rows a range has. */
  readonly rows: number;
  /** Whether a bucket with more rows is split as well, for which its rows are read. */
  readonly splitsBuckets: boolean;
}

/** An interval with more rows than 64 ranges of the usual size gets larger ranges. */
const maxRanges = 64;
/** A range costs an activity, steps of the journal and a request to S3. Not measured; see README.md. */
const minParallelRows = 250_000;
/** Parallel ranges may be larger than equal ones, so that the last one is not a small rest. */
const parallelTolerance = 1.1;

/** How an interval of so many rows is split; null if it is not. */
export function rangeSizeOf(
  rows: number,
  settings: Pick<Settings, 'EXPORTD_PARALLEL_RANGES' | 'EXPORTD_RANGE_ROWS'>,
): RangeSize | null {
  const { EXPORTD_PARALLEL_RANGES: maxParallel, EXPORTD_RANGE_ROWS: rangeRows } = settings;
  if (rows > rangeRows)
    return { rows: Math.max(rangeRows, Math.ceil(rows / maxRanges)), splitsBuckets: true };
  const ranges = Math.min(maxParallel, Math.floor(rows / minParallelRows));
  if (ranges < 2) return null;
  return { rows: Math.ceil((rows / ranges) * parallelTolerance), splitsBuckets: false };
}

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
export function planCuts(
  { buckets }: Pick<Fingerprint, 'buckets'>,
  { rows: every, splitsBuckets }: RangeSize,
): PlannedCut[] {
  const cuts: PlannedCut[] = [];
  let rowsInRange = 0;
  for (const { index, rows } of buckets) {
    if (rowsInRange > 0 && rowsInRange + rows > every) {
      cuts.push({ before: index });
      rowsInRange = 0;
    }
    const isSplit = splitsBuckets && rowsInRange === 0 && rows > bucketTolerance * every;
    const subranges = isSplit ? Math.ceil(rows / every) : 1;
    if (subranges > 1) cuts.push({ inside: index, every: Math.ceil(rows / subranges) });
    // The last subrange ends with its bucket, so that the next range starts with the next bucket.
    rowsInRange += rows;
  }
  return cuts;
}

/**
 * Keys that split a range into key ranges of about a size. Only a bucket with more rows than a range is read for
 * it, so a large interval is split at once.
 */
export async function splitInterval(
  source: Pick<Source, 'splitKeys'>,
  range: RowRange,
  fingerprint: Fingerprint,
  size: RangeSize | null,
  signal: AbortSignal,
): Promise<readonly SortKey[]> {
  if (!size) return [];
  // The buckets do not have the selected rows.
  if (fingerprint.all_events) return size.splitsBuckets ? source.splitKeys(range, size.rows, signal) : [];
  const keys: SortKey[] = [];
  for (const cut of planCuts(fingerprint, size)) {
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
