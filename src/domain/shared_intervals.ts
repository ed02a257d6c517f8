import {
  intervalContaining,
  intervalFrom,
  nominalLengthMs,
  type DataInterval,
  type ScheduleRevision,
} from './intervals.ts';

/**
 * Whether two exports may have an interval in common, now or in the past that a backfill may reach: definitions of one
 * length that are, or were, in force at the same time, or a bridging interval that happens to be one of the other's.
 */
export const canShareIntervals = (
  revisions: readonly ScheduleRevision[],
  others: readonly ScheduleRevision[],
): boolean =>
  revisions.some((_, index) => others.some((_other, at) => overlap(revisions, index, others, at))) ||
  coincide(bridgesOf(revisions), others) ||
  coincide(bridgesOf(others), revisions);

function overlap(
  revisions: readonly ScheduleRevision[],
  index: number,
  others: readonly ScheduleRevision[],
  at: number,
): boolean {
  const [one, other] = [revisions[index], others[at]];
  if (!one || !other || nominalLengthMs(one.interval) !== nominalLengthMs(other.interval)) return false;
  const from = Math.max(startOf(one), startOf(other));
  const until = Math.min(startOf(revisions[index + 1]), startOf(others[at + 1]));
  return from < until;
}

/** When a definition takes over; never, where there is none. */
const startOf = (revision: ScheduleRevision | undefined): number => {
  if (!revision) return Number.POSITIVE_INFINITY;
  return revision.effective_from === null ? Number.NEGATIVE_INFINITY : Date.parse(revision.effective_from);
};

/** The intervals on both sides of each change of definition. */
const bridgesOf = (revisions: readonly ScheduleRevision[]): DataInterval[] =>
  revisions.flatMap(({ effective_from }) => {
    if (effective_from === null) return [];
    const takeover = new Date(effective_from);
    return [
      intervalContaining(revisions, new Date(takeover.getTime() - 1)),
      intervalFrom(revisions, takeover),
    ];
  });

const coincide = (intervals: readonly DataInterval[], revisions: readonly ScheduleRevision[]): boolean =>
  intervals.some(({ start, end }) => {
    const other = intervalContaining(revisions, new Date(start));
    return other.start === start && other.end === end;
  });
