import {
  intervalContaining,
  intervalFrom,
  nominalLengthMs,
  type DataInterval,
  type ScheduleRevision,
} from './intervals.ts';

/**
 * Whether two exports can have an interval in common, now or in a past that a backfill can reach. They can if revisions
 * with intervals of the same length were in force at the same time, or if a bridging interval of one equals an interval
 * of the other.
 */
export const canShareIntervals = (
  revisions: readonly ScheduleRevision[],
  others: readonly ScheduleRevision[],
): boolean =>
  revisions.some((_, index) => others.some((_other, at) => revisionsOverlap(revisions, index, others, at))) ||
  shareAnyInterval(bridgesOf(revisions), others) ||
  shareAnyInterval(bridgesOf(others), revisions);

function revisionsOverlap(
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

/** When a revision takes effect, in milliseconds; infinity if there is no revision. */
const startOf = (revision: ScheduleRevision | undefined): number => {
  if (!revision) return Number.POSITIVE_INFINITY;
  return revision.effective_from === null ? Number.NEGATIVE_INFINITY : Date.parse(revision.effective_from);
};

/** The intervals on both sides of each change of revision. */
const bridgesOf = (revisions: readonly ScheduleRevision[]): DataInterval[] =>
  revisions.flatMap(({ effective_from }) => {
    if (effective_from === null) return [];
    const effectiveFrom = new Date(effective_from);
    return [
      intervalContaining(revisions, new Date(effectiveFrom.getTime() - 1)),
      intervalFrom(revisions, effectiveFrom),
    ];
  });

const shareAnyInterval = (
  intervals: readonly DataInterval[],
  revisions: readonly ScheduleRevision[],
): boolean =>
  intervals.some(({ start, end }) => {
    const other = intervalContaining(revisions, new Date(start));
    return other.start === start && other.end === end;
  });
