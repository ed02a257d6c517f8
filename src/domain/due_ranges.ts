import type { LiveBatchExport } from './batch_export.ts';
import { withinBounds } from './interval_ranges.ts';
import { intervalContaining, type DataInterval } from './intervals.ts';

/**
 * Returns the ended intervals that the schedule still has to create a run for, as ranges, oldest first. Excludes the
 * intervals that it skips: those that ended after the pause of a paused export, before `start_at` or after `end_at`.
 */
export function dueRanges(live: LiveBatchExport, now: Date): DataInterval[] {
  const { revisions, paused, paused_recorded_at, scheduled_until, skips_ahead, definition } = live;
  const stopped = paused && paused_recorded_at !== null ? Date.parse(paused_recorded_at) : Infinity;
  const until = intervalContaining(revisions, new Date(Math.min(now.getTime(), stopped))).start;
  const starts = [scheduled_until, ...skips_ahead.map(({ end }) => end)];
  const ends = [...skips_ahead.map(({ start }) => start), until];
  return starts.flatMap((start, index) => {
    const between = { start, end: ends[index] ?? until };
    return withinBounds(revisions, between, definition) ?? [];
  });
}
