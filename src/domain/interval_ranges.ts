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

/** The bounds of the whole intervals that touch `[start, end)` and had ended by `endedBy`; undefined when there are none. */
export function wholeIntervals(
  revisions: readonly ScheduleRevision[],
  range: { readonly start: Date; readonly end: Date },
  endedBy: Date,
): DataInterval | undefined {
  const { start } = intervalContaining(revisions, range.start);
  const touched = intervalContaining(revisions, new Date(range.end.getTime() - 1)).end;
  return rangeOf(start, earlier(touched, intervalContaining(revisions, endedBy).start));
}

/**
 * The part of a range of whole intervals whose intervals end neither before `start_at` nor after `end_at`; undefined
 * when there are none.
 */
export function withinBounds(
  revisions: readonly ScheduleRevision[],
  { start, end }: DataInterval,
  bounds: { readonly start_at: string | null; readonly end_at: string | null },
): DataInterval | undefined {
  // The interval that ends at start_at is the first that counts; it holds the millisecond before.
  const first =
    bounds.start_at && intervalContaining(revisions, new Date(Date.parse(bounds.start_at) - 1)).start;
  const last = bounds.end_at && intervalContaining(revisions, new Date(bounds.end_at)).start;
  return rangeOf(first ? later(start, first) : start, last ? earlier(end, last) : end);
}

/**
 * How many intervals lie between two boundaries. Minutes are not walked through one by one: a year has half a million.
 * @param atMost past which the exact number does not matter; counting may stop there.
 */
export function countIntervals(
  revisions: readonly ScheduleRevision[],
  range: DataInterval,
  atMost = Number.POSITIVE_INFINITY,
): number {
  const end = new Date(range.end);
  let from = new Date(range.start);
  let count = 0;
  while (from < end && count <= atMost) {
    const { revision, until } = revisionAt(revisions, from);
    const stop = until !== null && until < end ? until : end;
    count += countBetween(revision, from, stop, atMost - count);
    from = stop;
  }
  return count;
}

function countBetween(definition: ScheduleDefinition, from: Date, stop: Date, atMost: number): number {
  const unit = parseInterval(definition.interval);
  if (unit?.kind === 'minutes') {
    const length = unit.minutes * 60_000;
    return Math.ceil(stop.getTime() / length) - Math.floor(from.getTime() / length);
  }
  // An absurd range is not walked through to learn that it is too long. A month has 31 days at most.
  const longest = (nominalLengthMs(definition.interval) * 31) / 30;
  const atLeast = Math.floor((stop.getTime() - from.getTime()) / longest) - 3;
  if (atLeast > atMost) return atLeast;
  let count = 0;
  for (let at = from; at < stop && count <= atMost; at = nextBoundary(definition, at)) count += 1;
  return count;
}

const earlier = (one: string, other: string): string => (new Date(one) < new Date(other) ? one : other);
const later = (one: string, other: string): string => (new Date(one) < new Date(other) ? other : one);

const rangeOf = (start: string, end: string): DataInterval | undefined =>
  new Date(start) < new Date(end) ? { start, end } : undefined;
