import type { DataInterval } from '../domain/intervals.ts';

/** A requested time range; null is unbounded. */
export interface TimeRange {
  readonly from: string | null;
  readonly to: string | null;
}

/** Time that is covered by no interval, or by two. */
export interface Coverage<Interval extends DataInterval> {
  readonly gaps: readonly DataInterval[];
  readonly overlaps: readonly {
    readonly shared: DataInterval;
    readonly one: Interval;
    readonly other: Interval;
  }[];
}

const milliseconds = (time: string): number => new Date(time).getTime();

/** Sorts intervals by time. */
export const sortIntervals = <Interval extends DataInterval>(intervals: readonly Interval[]): Interval[] =>
  intervals.toSorted(
    (one, other) =>
      milliseconds(one.start) - milliseconds(other.start) || milliseconds(one.end) - milliseconds(other.end),
  );

/**
 * Finds gaps and overlaps of intervals between `from` and `to`. A missing bound defaults to the first start or last
 * end of the intervals. Each overlapping pair is returned.
 */
export function coverageOf<Interval extends DataInterval>(
  intervals: readonly Interval[],
  range: TimeRange,
): Coverage<Interval> {
  const gaps: DataInterval[] = [];
  const overlaps: { shared: DataInterval; one: Interval; other: Interval }[] = [];
  let coveredTo = range.from;
  let reaching: Interval[] = [];
  for (const interval of sortIntervals(intervals)) {
    if (coveredTo !== null && milliseconds(interval.start) > milliseconds(coveredTo))
      gaps.push({ start: coveredTo, end: interval.start });
    reaching = reaching.filter(({ end }) => milliseconds(end) > milliseconds(interval.start));
    for (const one of reaching)
      overlaps.push({
        shared: { start: interval.start, end: earlier(one.end, interval.end) },
        one,
        other: interval,
      });
    reaching.push(interval);
    coveredTo = coveredTo === null ? interval.end : later(coveredTo, interval.end);
  }
  if (range.to !== null && coveredTo !== null && milliseconds(range.to) > milliseconds(coveredTo))
    gaps.push({ start: coveredTo, end: range.to });
  return { gaps, overlaps };
}

const earlier = (one: string, other: string): string =>
  milliseconds(one) < milliseconds(other) ? one : other;
const later = (one: string, other: string): string => (milliseconds(one) > milliseconds(other) ? one : other);

/** Whether an interval overlaps `[from, to)`; null is unbounded. */
export const overlaps = ({ start, end }: DataInterval, { from, to }: TimeRange): boolean =>
  (from === null || milliseconds(end) > milliseconds(from)) &&
  (to === null || milliseconds(start) < milliseconds(to));
