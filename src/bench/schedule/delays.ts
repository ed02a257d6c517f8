import { rounded } from '../statistics.ts';
import type { Delays } from './result.ts';

/**
 * The smallest value that is not exceeded by at least this share of the values.
 * @throws RangeError without values
 */
export function percentileOf(values: readonly number[], share: number): number {
  const sorted = values.toSorted((left, right) => left - right);
  const value = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
  if (value === undefined) throw new RangeError('The percentile of no values is undefined.');
  return value;
}

/** Delays in seconds. They come from several clocks, so one may be slightly negative. */
export function delaysOf(milliseconds: readonly number[]): Delays {
  const count = milliseconds.length;
  if (count === 0) return { count, p50: null, p99: null, maximum: null };
  const seconds = (share: number) => rounded(percentileOf(milliseconds, share) / 1_000);
  return { count, p50: seconds(0.5), p99: seconds(0.99), maximum: seconds(1) };
}
