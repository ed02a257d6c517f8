import {
  intervalContaining,
  nextBoundary,
  nominalLengthMs,
  parseInterval,
  revisionAt,
  type DataInterval,
  type ScheduleDefinition,
  type ScheduleRevision,
} from './intervals.ts';

/** Returns the bounds of the whole intervals that overlap `[start, end)` and ended by `endedBy`; undefined if none did. */
export function wholeIntervals(
  revisions: readonly ScheduleRevision[],
  range: { readonly start: Date; readonly end: Date },
  endedBy: Date,
): DataInterval | undefined {
  const { start } = intervalContaining(revisions, range.start);
  const lastEnd = intervalContaining(revisions, new Date(range.end.getTime() - 1)).end;
  return nonEmptyRange(start, earlier(lastEnd, intervalContaining(revisions, endedBy).start));
}

/**
 * Returns the part of a range of whole intervals whose intervals end neither before `start_at` nor after `end_at`;
 * undefined if no interval does.
 */
export function withinBounds(
  revisions: readonly ScheduleRevision[],
  { start, end }: DataInterval,
  bounds: { readonly start_at: string | null; readonly end_at: string | null },
): DataInterval | undefined {
  const first = bounds.start_at && firstIntervalEndingFrom(revisions, bounds.start_at).start;
  const last = bounds.end_at && intervalContaining(revisions, new Date(bounds.end_at)).start;
  return nonEmptyRange(first ? later(start, first) : start, last ? earlier(end, last) : end);
}

/** Returns the first interval that does not end before `start_at`. One that ends at it contains the millisecond before. */
export const firstIntervalEndingFrom = (
  revisions: readonly ScheduleRevision[],
  start_at: string,
): DataInterval => intervalContaining(revisions, new Date(Date.parse(start_at) - 1));

/**
 * Counts the intervals between two boundaries. Intervals of minutes are computed, not iterated: a year has half a
 * million of them.
 * @param max counting may stop above this number.
 */
export function countIntervals(
  revisions: readonly ScheduleRevision[],
  range: DataInterval,
  max = Number.POSITIVE_INFINITY,
): number {
  const end = new Date(range.end);
  let from = new Date(range.start);
  let count = 0;
  while (from < end && count <= max) {
    const { revision, until } = revisionAt(revisions, from);
    const stop = until !== null && until < end ? until : end;
    count += countBetween(revision, from, stop, max - count);
    from = stop;
  }
  return count;
}

function countBetween(definition: ScheduleDefinition, from: Date, stop: Date, max: number): number {
  const unit = parseInterval(definition.interval);
  if (unit?.name === 'minutes') {
    const length = unit.minutes * 60_000;
    return Math.ceil(stop.getTime() / length) - Math.floor(from.getTime() / length);
  }
  // Rejects an absurdly long range without iterating over it. A month has at most 31 days.
  const maxLengthMs = (nominalLengthMs(definition.interval) * 31) / 30;
  const lowerBound = Math.floor((stop.getTime() - from.getTime()) / maxLengthMs) - 3;
  if (lowerBound > max) return lowerBound;
  let count = 0;
  for (let at = from; at < stop && count <= max; at = nextBoundary(definition, at)) count += 1;
  return count;
}

const earlier = (one: string, other: string): string => (new Date(one) < new Date(other) ? one : other);
const later = (one: string, other: string): string => (new Date(one) < new Date(other) ? other : one);

const nonEmptyRange = (start: string, end: string): DataInterval | undefined =>
  new Date(start) < new Date(end) ? { start, end } : undefined;
