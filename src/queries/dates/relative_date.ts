import type { DateTime, DurationLike } from 'luxon';
import type { QueryProject } from '../query_kind.ts';
import {
  daysLater,
  firstOfDay,
  lastOfDay,
  localDayOf,
  momentOfLocal,
  startOfClockUnit,
} from './local_time.ts';

export type RelativeUnit = 'second' | 'minute' | 'hour' | 'day' | 'week' | 'month' | 'quarter' | 'year';

/** A time some units ago, or the first or last moment of the unit that contains it. */
export interface RelativeDate {
  readonly amount: number;
  readonly unit: RelativeUnit;
  readonly position: 'start' | 'end' | null;
}

const units: Readonly<Record<string, RelativeUnit>> = {
  s: 'second',
  M: 'minute',
  h: 'hour',
  d: 'day',
  w: 'week',
  m: 'month',
  q: 'quarter',
  y: 'year',
};

const pattern = /^-?(\d{1,7})?([hdwmMsqy])(Start|End)?$/;

/**
 * Parses relative dates such as `-7d`, `dStart` and `-1mEnd`; null for anything else. The sign is ignored: all relative
 * dates are in the past.
 */
export function parseRelativeDate(text: string): RelativeDate | null {
  const [, amount, letter = '', position] = pattern.exec(text.trim()) ?? [];
  const unit = units[letter];
  if (unit === undefined || (amount === undefined && position === undefined)) return null;
  return {
    amount: Number(amount ?? 0),
    unit,
    position: position === 'Start' ? 'start' : position === 'End' ? 'end' : null,
  };
}

/** Whether its unit is shorter than a day. */
export const isShort = ({ unit }: RelativeDate): boolean =>
  unit === 'hour' || unit === 'minute' || unit === 'second';

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
  { week_start_day }: Pick<QueryProject, 'week_start_day'>,
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
export const daysIntoWeek = ({ weekday }: DateTime, weekStart: QueryProject['week_start_day']): number =>
  weekStart === 'monday' ? weekday - 1 : weekday % 7;
