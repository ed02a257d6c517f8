import { DateTime, type Zone } from 'luxon';
import type { AbsoluteDate } from '../../filters/dates.ts';

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

/** The point in time of a date in a zone. @param choice which one if the local time occurs twice */
export const momentOfDate = (
  { local, hasOffset }: AbsoluteDate,
  zone: Zone,
  choice: 'first' | 'last',
): DateTime => (hasOffset ? DateTime.fromMillis(local, { zone }) : momentOfLocal(local, zone, choice));
