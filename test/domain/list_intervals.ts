import { intervalFrom, type DataInterval, type ScheduleRevision } from '../../src/domain/intervals.ts';

/** Lists the intervals between two boundaries one by one. */
export function listIntervals(
  revisions: readonly ScheduleRevision[],
  { start, end }: DataInterval,
): DataInterval[] {
  const intervals: DataInterval[] = [];
  for (let at = start; new Date(at) < new Date(end);) {
    const interval = intervalFrom(revisions, new Date(at));
    intervals.push(interval);
    at = interval.end;
  }
  return intervals;
}
