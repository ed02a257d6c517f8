import { bucketWidthMs, type Fingerprint } from '../domain/fingerprint.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { readFingerprint, type CreateModelQuery } from './read_fingerprint.ts';
import type { RowRange } from './source.ts';
import type { SourceConnections } from './source_connection.ts';

/**
 * Reads the fingerprints of adjacent intervals of equal length, in order, with one statement. If their buckets do not
 * divide them evenly, each interval is read separately.
 * @throws FingerprintHashDiffers, and the signal's reason when it is aborted
 */
export async function readFingerprints(
  connections: SourceConnections,
  createQuery: CreateModelQuery,
  range: Omit<RowRange, 'interval'>,
  intervals: readonly DataInterval[],
  signal: AbortSignal | undefined,
): Promise<Fingerprint[]> {
  const [first] = intervals;
  const last = intervals.at(-1);
  if (!first || !last) return [];
  const width_ms = bucketWidthMs(first);
  const perInterval = (Date.parse(first.end) - Date.parse(first.start)) / width_ms;
  if (intervals.length === 1 || !Number.isInteger(perInterval)) {
    const fingerprints: Fingerprint[] = [];
    for (const interval of intervals)
      fingerprints.push(await readFingerprint(connections, createQuery, { ...range, interval }, signal));
    return fingerprints;
  }
  const interval = { start: first.start, end: last.end };
  const whole = await readFingerprint(connections, createQuery, { ...range, interval }, signal, { width_ms });
  const byInterval = Map.groupBy(whole.buckets, ({ index }) => Math.floor(index / perInterval));
  return intervals.map((_, position) => ({
    ...whole,
    buckets: (byInterval.get(position) ?? []).map((bucket) => ({
      ...bucket,
      index: bucket.index - position * perInterval,
    })),
  }));
}
