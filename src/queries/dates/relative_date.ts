import type { DateTime, DurationLike } from 'luxon';
import type { RelativeDate, RelativeUnit } from '../../filters/dates.ts';
import type { QueryProject } from '../query_kind.ts';
import {
  daysLater,
  firstOfDay,
  lastOfDay,
  localDayOf,
  momentOfLocal,
  startOfClockUnit,
} from './local_time.ts';

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
