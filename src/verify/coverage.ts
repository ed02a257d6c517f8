import type { DataInterval } from '../domain/intervals.ts';

/** A range of time that was asked for; null for an open end. */
export interface TimeRange {
  readonly from: string | null;
  readonly to: string | null;
}

/** Time that no interval covers, or that two do. */
export interface Coverage<Interval extends DataInterval> {
  readonly gaps: readonly DataInterval[];
  readonly overlaps: readonly {
    readonly shared: DataInterval;
    readonly one: Interval;
    readonly other: Interval;
  }[];
}

const milliseconds = (time: string): number => new Date(time).getTime();

/** Intervals in the order of time. */
export const sortIntervals = <Interval extends DataInterval>(intervals: readonly Interval[]): Interval[] =>
  intervals.toSorted(
    (one, other) =>
      milliseconds(one.start) - milliseconds(other.start) || milliseconds(one.end) - milliseconds(other.end),
  );

/**
 * Where intervals do not tile the time from `from` to `to`; without one of these, from their own first start or to
 * their own last end. Every pair of intervals that share time is named.
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

/** Whether an interval shares time with `[from, to)`; an open end reaches for ever. */
export const touches = ({ start, end }: DataInterval, { from, to }: TimeRange): boolean =>
  (from === null || milliseconds(end) > milliseconds(from)) &&
  (to === null || milliseconds(start) < milliseconds(to));
