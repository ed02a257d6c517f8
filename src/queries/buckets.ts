/** The intervals of a range of time: their starts, and how results name them. */
import { DateTime, type Zone } from 'luxon';
import {
  daysIntoWeek,
  daysLater,
  firstOfDay,
  lastOfDay,
  localDayOf,
  localOf,
  momentOfLocal,
  startOfClockUnit,
  type WeekStart,
} from '../filters/moments.ts';

export type Interval = 'minute' | 'hour' | 'day' | 'week' | 'month';

const shortest: Readonly<Record<Interval, number>> = {
  minute: 60_000,
  hour: 3_600_000,
  day: 82_800_000,
  week: 600_000_000,
  month: 2_400_000_000,
};

/** An upper bound of the number of intervals between two times. */
export const bucketUpperBound = (from: DateTime, to: DateTime, interval: Interval): number =>
  (to.toMillis() - from.toMillis()) / shortest[interval] + 2;

/**
 * The last millisecond of the minute or hour; of the day for longer intervals, because ranges of those end with a day.
 */
export function endForInterval(moment: DateTime, interval: Interval): DateTime {
  if (interval !== 'minute' && interval !== 'hour') return lastOfDay(moment);
  return startOfClockUnit(moment, interval)
    .plus({ [interval]: 1 })
    .minus(1);
}

/**
 * The start of a range that begins within an interval. Weeks are not extended to their first day, so the first week can
 * be partial.
 */
export function startForInterval(moment: DateTime, interval: Interval): DateTime {
  if (interval === 'minute' || interval === 'hour') return startOfClockUnit(moment, interval);
  if (interval !== 'month') return firstOfDay(moment);
  return momentOfLocal(localStart(moment, 'month', 'sunday'), moment.zone, 'first');
}

/** The starts of all intervals that overlap the range, as the dialect's toStartOf… functions return them. */
export function bucketsOf(
  from: DateTime,
  to: DateTime,
  interval: Interval,
  weekStart: WeekStart,
): readonly DateTime[] {
  const buckets: DateTime[] = [];
  if (from > to) return buckets;
  if (interval === 'minute' || interval === 'hour') return clockBuckets(from, to, shortest[interval]);
  const last = localOf(to);
  let local = localStart(from, interval, weekStart);
  while (local <= last) {
    buckets.push(momentOfLocal(local, from.zone, 'first'));
    local = nextLocal(local, interval);
  }
  return buckets;
}

function clockBuckets(from: DateTime, to: DateTime, length: number): readonly DateTime[] {
  const { zone } = from;
  const offsetAt = offsetsOf(zone);
  const buckets: DateTime[] = [];
  // Each start is computed from a time inside the interval, because clocks can change by less than an hour.
  for (let inside = from.toMillis(); inside <= to.toMillis();) {
    const local = inside + offsetAt(inside) * shortest.minute;
    const start = inside - (((local % length) + length) % length);
    buckets.push(DateTime.fromMillis(start, { zone }));
    inside = start + length;
  }
  return buckets;
}

/**
 * Offsets of a zone in minutes for ascending times. Lookups are slow, so one serves a whole day unless clocks change on
 * it.
 */
function offsetsOf(zone: Zone): (moment: number) => number {
  const day = 86_400_000;
  let known = { from: 0, to: 0, offset: 0 };
  return (moment) => {
    if (moment >= known.from && moment < known.to) return known.offset;
    const offset = zone.offset(moment);
    if (zone.offset(moment + day) === offset) known = { from: moment, to: moment + day, offset };
    return offset;
  };
}

function localStart(moment: DateTime, interval: 'day' | 'week' | 'month', weekStart: WeekStart): number {
  const day = localDayOf(moment);
  if (interval === 'day') return day;
  return interval === 'week'
    ? daysLater(day, -daysIntoWeek(moment, weekStart))
    : daysLater(day, 1 - moment.day);
}

function nextLocal(local: number, interval: 'day' | 'week' | 'month'): number {
  if (interval !== 'month') return daysLater(local, interval === 'day' ? 1 : 7);
  const first = new Date(local);
  return Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1);
}

/** A range of time; `to` is inclusive. */
interface Span {
  readonly from: DateTime;
  readonly to: DateTime;
}

/** Formats an interval for `days` of a result: `2024-03-04`, or `2024-03-04 09:00:00` for hours and minutes. */
export function dayOf(bucket: DateTime, interval: Interval): string {
  const hasClock = interval === 'hour' || interval === 'minute';
  return bucket.toFormat(hasClock ? 'yyyy-MM-dd HH:mm:ss' : 'yyyy-MM-dd');
}

/**
 * Formats an interval for `labels` of a result: `4-Mar-2024`, `4-Mar 09:00`, `Mar 2024`. A week is labelled by its days
 * within the range: `3–9 Mar`.
 */
export function labelOf(bucket: DateTime, interval: Interval, range: Span): string {
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

function weekLabel(bucket: DateTime, { from, to }: Span): string {
  const last = bucket.plus({ days: 6 });
  const [start, end] = [from > bucket ? from : bucket, to < last ? to : last];
  const [first, final] = [start.setLocale('en-US'), end.setLocale('en-US').toFormat('d MMM')];
  if (first.hasSame(end, 'day')) return final;
  return `${first.toFormat(first.hasSame(end, 'month') ? 'd' : 'd MMM')}–${final}`;
}
