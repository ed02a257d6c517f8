import type { LiveBatchExport, SkipReason } from './batch_export.ts';
import { withinBounds } from './interval_ranges.ts';
import { intervalContaining, type DataInterval } from './intervals.ts';

/** A range of ended intervals about which the schedule has recorded nothing yet. */
export interface UndecidedRange extends DataInterval {
  /** Why they will get no run; null if they are due. */
  readonly reason: SkipReason | null;
}

/** Returns the ended intervals that the schedule still has to create a run for, as ranges, oldest first. */
export const dueRanges = (live: LiveBatchExport, now: Date): DataInterval[] =>
  undecidedRanges(live, now).flatMap(({ start, end, reason }) => (reason === null ? [{ start, end }] : []));

/**
 * Returns the ended intervals about which the schedule has recorded nothing yet, as ranges, oldest first. They are due,
 * or will be skipped: those that ended after the pause of a paused export, before `start_at` or after `end_at`.
 */
export function undecidedRanges(live: LiveBatchExport, now: Date): UndecidedRange[] {
  const { revisions, paused, paused_recorded_at, scheduled_until, skips_ahead, definition } = live;
  const until = intervalContaining(revisions, now).start;
  const pausedFrom =
    paused && paused_recorded_at !== null
      ? intervalContaining(revisions, new Date(paused_recorded_at)).start
      : until;
  const starts = [scheduled_until, ...skips_ahead.map(({ end }) => end)];
  const ends = [...skips_ahead.map(({ start }) => start), until];
  return starts.flatMap((start, index) => {
    const between = { start, end: ends[index] ?? until };
    const wanted = withinBounds(revisions, between, definition) ?? { start: between.end, end: between.end };
    const stop = clamp(pausedFrom, wanted);
    const parts: readonly UndecidedRange[] = [
      { start, end: wanted.start, reason: reasonOutside(definition, wanted.start) },
      { start: wanted.start, end: stop, reason: null },
      { start: stop, end: wanted.end, reason: 'paused' },
      { start: wanted.end, end: between.end, reason: 'after end_at' },
    ];
    return parts.filter((part) => new Date(part.start) < new Date(part.end));
  });
}

/** Why intervals that end at or before `end` are outside the bounds of the export. */
const reasonOutside = ({ end_at }: LiveBatchExport['definition'], end: string): SkipReason =>
  end_at !== null && new Date(end) > new Date(end_at) ? 'after end_at' : 'before start_at';

const clamp = (instant: string, { start, end }: DataInterval): string => {
  if (new Date(instant) < new Date(start)) return start;
  return new Date(instant) > new Date(end) ? end : instant;
};
