import { intervalFrom, type DataInterval, type SchedulePiece } from '../../src/domain/intervals.ts';

/** The intervals between two boundaries, walked through one by one. */
export function intervalsOf(pieces: readonly SchedulePiece[], { start, end }: DataInterval): DataInterval[] {
  const intervals: DataInterval[] = [];
  for (let at = start; new Date(at) < new Date(end);) {
    const interval = intervalFrom(pieces, new Date(at));
    intervals.push(interval);
    at = interval.end;
  }
  return intervals;
}
