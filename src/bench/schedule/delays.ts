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
export const delaysOf = (milliseconds: readonly number[]): Delays => ({
  count: milliseconds.length,
  p50: rounded(percentileOf(milliseconds, 0.5) / 1_000),
  p99: rounded(percentileOf(milliseconds, 0.99) / 1_000),
  maximum: rounded(percentileOf(milliseconds, 1) / 1_000),
});
