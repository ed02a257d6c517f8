import type { LiveBatchExport } from './batch_export.ts';
import { withinBounds } from './interval_ranges.ts';
import { intervalContaining, type DataInterval } from './intervals.ts';

/**
 * The intervals that have ended and that the schedule has still to open a run of, as ranges between boundaries, oldest
 * first. Not those that it leaves out: what ended since the export was paused, before `start_at` or after `end_at`.
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
