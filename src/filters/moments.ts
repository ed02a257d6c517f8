import { DateTime, type DurationLike, type Zone } from 'luxon';
import type { RelativeDate, RelativeUnit } from './condition.ts';

/** The first day of a week, as a project has it. */
export type WeekStart = 'sunday' | 'monday';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** The local time of a point in time, in milliseconds as if it were UTC. */
export const localOf = (moment: DateTime): number => moment.toMillis() + moment.offset * minute;

/**
 * The point in time of a local time. A local time that occurs twice, because clocks are set back, means the first or
 * the last of both. One that clocks skip is moved forward by the length of the gap. The dialect chooses the first.
 */
export function momentOfLocal(local: number, zone: Zone, choice: 'first' | 'last'): DateTime {
  const candidates = [local - day, local + day].map((near) => {
    const offset = zone.offset(near);
    const moment = local - offset * minute;
    return { moment, exists: zone.offset(moment) === offset };
  });
  const existing = candidates.filter(({ exists }) => exists);
  const found = (choice === 'first' ? existing.at(0) : existing.at(-1)) ?? candidates[0];
  return DateTime.fromMillis(found?.moment ?? local, { zone });
}

/** Midnight of the day of a point in time, as a local time. */
export const localDayOf = (moment: DateTime): number => Math.floor(localOf(moment) / day) * day;

/** Midnight some days later, as a local time. */
export const daysLater = (local: number, days: number): number => local + days * day;

/** The first moment of the day of a point in time. */
export const firstOfDay = (moment: DateTime): DateTime =>
  momentOfLocal(localDayOf(moment), moment.zone, 'first');

/** The last millisecond of the day of a point in time. */
export const lastOfDay = (moment: DateTime): DateTime =>
  momentOfLocal(daysLater(localDayOf(moment), 1), moment.zone, 'first').minus(1);

/** The start of the hour or minute of a point in time. Truncates with its own offset, like PostgreSQL. */
export function startOfClockUnit(moment: DateTime, unit: 'hour' | 'minute'): DateTime {
  const length = unit === 'hour' ? hour : minute;
  const past = ((localOf(moment) % length) + length) % length;
  return moment.minus(past);
}

const durations: Readonly<Record<RelativeUnit, (amount: number) => DurationLike>> = {
  second: (seconds) => ({ seconds }),
  minute: (minutes) => ({ minutes }),
  hour: (hours) => ({ hours }),
  day: (days) => ({ days }),
  week: (weeks) => ({ weeks }),
  month: (months) => ({ months }),
  // Thirteen weeks, as in PostHog, so that weekdays stay the same.
  quarter: (quarters) => ({ weeks: 13 * quarters }),
  year: (years) => ({ years }),
};

/** The point in time of a date relative to `now`. */
export function momentBefore(
  now: DateTime,
  { amount, unit, position }: RelativeDate,
  { week_start_day }: { readonly week_start_day: WeekStart },
): DateTime {
  const moment = now.minus(durations[unit](amount));
  if (position === null) return moment;
  switch (unit) {
    case 'second':
      return position === 'start' ? moment.startOf('second') : moment.endOf('second');
    case 'minute':
    case 'hour': {
      const start = startOfClockUnit(moment, unit);
      return position === 'start' ? start : start.plus({ [unit]: 1 }).minus(1);
    }
    case 'day':
      return position === 'start' ? firstOfDay(moment) : lastOfDay(moment);
    case 'week': {
      const first = daysLater(localDayOf(moment), -daysIntoWeek(moment, week_start_day));
      return bound(moment, first, daysLater(first, 7), position);
    }
    default: {
      const months = unit === 'month' ? 1 : unit === 'quarter' ? 3 : 12;
      const index = Math.floor((moment.month - 1) / months) * months;
      return bound(moment, Date.UTC(moment.year, index), Date.UTC(moment.year, index + months), position);
    }
  }
}

const bound = ({ zone }: DateTime, first: number, next: number, position: 'start' | 'end'): DateTime =>
  position === 'start' ? momentOfLocal(first, zone, 'first') : momentOfLocal(next, zone, 'first').minus(1);

/** Days since the start of the week. */
export const daysIntoWeek = ({ weekday }: DateTime, weekStart: WeekStart): number =>
  weekStart === 'monday' ? weekday - 1 : weekday % 7;
