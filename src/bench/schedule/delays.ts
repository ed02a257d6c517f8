import { rounded } from '../figures.ts';
import type { Delays } from './document.ts';

/**
 * The smallest of the values that at least this share of them do not exceed.
 * @throws RangeError when there are none
 */
export function percentileOf(values: readonly number[], share: number): number {
  const sorted = values.toSorted((left, right) => left - right);
  const value = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
  if (value === undefined) throw new RangeError('There is no percentile of nothing.');
  return value;
}

/** Delays of milliseconds as seconds. Clocks are read in several places, so one may be a little below zero. */
export function delaysOf(milliseconds: readonly number[]): Delays {
  const count = milliseconds.length;
  if (count === 0) return { count, p50: null, p99: null, maximum: null };
  const seconds = (share: number) => rounded(percentileOf(milliseconds, share) / 1_000);
  return { count, p50: seconds(0.5), p99: seconds(0.99), maximum: seconds(1) };
}
