import { DateTime, type Zone } from 'luxon';
import type { QueryProject } from '../query_kind.ts';
import {
  daysLater,
  firstOfDay,
  lastOfDay,
  localDayOf,
  localOf,
  momentOfLocal,
  startOfClockUnit,
} from './local_time.ts';
import { daysIntoWeek } from './relative_date.ts';

export type Interval = 'minute' | 'hour' | 'day' | 'week' | 'month';
type WeekStart = QueryProject['week_start_day'];

/** Maximum intervals of a range: more than any chart shows, and few enough to compute quickly. */
export const maxBuckets = 20_000;

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
