import type { DataInterval } from '../domain/intervals.ts';

/** A requested time range; null is unbounded. */
export interface TimeRange {
  readonly from: string | null;
  readonly to: string | null;
}

/** Two intervals with the time that both cover. */
export interface OverlappingPair<Interval extends DataInterval> {
  readonly shared: DataInterval;
  readonly one: Interval;
  readonly other: Interval;
}

const milliseconds = (time: string): number => new Date(time).getTime();

/** Sorts intervals by time. */
export const sortIntervals = <Interval extends DataInterval>(intervals: readonly Interval[]): Interval[] =>
  intervals.toSorted(
    (one, other) =>
      milliseconds(one.start) - milliseconds(other.start) || milliseconds(one.end) - milliseconds(other.end),
  );

/** Finds all pairs of intervals that overlap. */
export function overlappingPairs<Interval extends DataInterval>(
  intervals: readonly Interval[],
): OverlappingPair<Interval>[] {
  const pairs: OverlappingPair<Interval>[] = [];
  let reaching: Interval[] = [];
  for (const interval of sortIntervals(intervals)) {
    reaching = reaching.filter(({ end }) => milliseconds(end) > milliseconds(interval.start));
    for (const one of reaching)
      pairs.push({
        shared: { start: interval.start, end: earlier(one.end, interval.end) },
        one,
        other: interval,
      });
    reaching.push(interval);
  }
  return pairs;
}

const earlier = (one: string, other: string): string =>
  milliseconds(one) < milliseconds(other) ? one : other;

/** Whether an interval overlaps `[from, to)`; null is unbounded. */
export const overlaps = ({ start, end }: DataInterval, { from, to }: TimeRange): boolean =>
  (from === null || milliseconds(end) > milliseconds(from)) &&
  (to === null || milliseconds(start) < milliseconds(to));
