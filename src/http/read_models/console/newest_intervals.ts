import type { UndecidedRange } from '../../../domain/due_intervals.ts';
import { intervalContaining, type DataInterval, type ScheduleRevision } from '../../../domain/intervals.ts';
import { skipStatusOf } from '../../../projections/intervals.ts';
import type { IntervalStatus } from '../../schemas/interval.ts';

/** A row of the ledger: an interval, or a range of intervals that the schedule skipped. Milliseconds since 1970. */
export interface LedgerEntry {
  readonly start: number;
  readonly end: number;
  readonly status: IntervalStatus;
}

/**
 * The newest intervals of an export, oldest first, without a hole between them: those with a row in the ledger, and those
 * about which the schedule has recorded nothing yet. Intervals that a backfill exported long before the others are left out.
 */
export function newestIntervals(
  revisions: readonly ScheduleRevision[],
  stored: readonly LedgerEntry[],
  undecided: readonly UndecidedRange[],
  max: number,
): LedgerEntry[] {
  const decided = stored.flatMap((entry) =>
    entry.status === 'paused' || entry.status === 'excluded' ? split(revisions, entry, max) : [entry],
  );
  const known = new Set(decided.map(({ start }) => start));
  const open = undecided.flatMap(({ start, end, reason }) => {
    const status = reason === null ? 'due' : skipStatusOf(reason);
    const intervals = split(revisions, { start: Date.parse(start), end: Date.parse(end), status }, max);
    return intervals.filter((interval) => !known.has(interval.start));
  });
  const newestFirst = [...decided, ...open].sort((one, other) => other.start - one.start);
  const isFirstBeforeHole = (entry: LedgerEntry, index: number) => {
    const newer = newestFirst[index - 1];
    return newer !== undefined && newer.start !== entry.end;
  };
  const hole = newestFirst.findIndex(isFirstBeforeHole);
  return newestFirst.slice(0, hole === -1 ? max : Math.min(hole, max)).reverse();
}

/** The newest intervals of a range, newest first. A range of years has far more than anyone reads. */
function split(revisions: readonly ScheduleRevision[], range: LedgerEntry, max: number): LedgerEntry[] {
  const intervals: LedgerEntry[] = [];
  let { end } = range;
  while (end > range.start && intervals.length < max) {
    const interval: DataInterval = intervalContaining(revisions, new Date(end - 1));
    const start = Math.max(Date.parse(interval.start), range.start);
    intervals.push({ start, end, status: range.status });
    end = start;
  }
  return intervals;
}
