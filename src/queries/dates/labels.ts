import type { DateTime } from 'luxon';
import type { Interval } from './intervals.ts';
import type { ResolvedRange } from './resolved_range.ts';

/** Formats an interval for `days` of a result: `2024-03-04`, or `2024-03-04 09:00:00` for hours and minutes. */
export function dayOf(bucket: DateTime, interval: Interval): string {
  const hasClock = interval === 'hour' || interval === 'minute';
  return bucket.toFormat(hasClock ? 'yyyy-MM-dd HH:mm:ss' : 'yyyy-MM-dd');
}

/**
 * Formats an interval for `labels` of a result: `4-Mar-2024`, `4-Mar 09:00`, `Mar 2024`. A week is labelled by its days
 * within the range: `3–9 Mar`.
 */
export function labelOf(bucket: DateTime, interval: Interval, range: ResolvedRange): string {
  const english = bucket.setLocale('en-US');
  switch (interval) {
    case 'minute':
    case 'hour':
      return english.toFormat('d-MMM HH:mm');
    case 'day':
      return english.toFormat('d-MMM-yyyy');
    case 'week':
      return weekLabel(english, range);
    case 'month':
      return english.toFormat('MMM yyyy');
  }
}

function weekLabel(bucket: DateTime, { from, to }: ResolvedRange): string {
  const last = bucket.plus({ days: 6 });
  const [start, end] = [from > bucket ? from : bucket, to < last ? to : last];
  const [first, final] = [start.setLocale('en-US'), end.setLocale('en-US').toFormat('d MMM')];
  if (first.hasSame(end, 'day')) return final;
  return `${first.toFormat(first.hasSame(end, 'month') ? 'd' : 'd MMM')}–${final}`;
}
