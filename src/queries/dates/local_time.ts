import { DateTime, type Zone } from 'luxon';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** What clocks of its zone show at a moment, as milliseconds as if they were UTC. */
export const localOf = (moment: DateTime): number => moment.toMillis() + moment.offset * minute;

/**
 * The moment at which clocks of a zone show a time. One that they show twice, because they are set back, is the first
 * or the last of both; one that they leave out is as much later as they are set forward. The last is PostgreSQL's choice.
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

/** Midnight of the day on which a moment lies, as what clocks show. */
export const localDayOf = (moment: DateTime): number => Math.floor(localOf(moment) / day) * day;

/** Midnight some days later, as what clocks show. */
export const daysLater = (local: number, days: number): number => local + days * day;

/** The first moment of the day on which a moment lies. */
export const firstOfDay = (moment: DateTime): DateTime =>
  momentOfLocal(localDayOf(moment), moment.zone, 'first');

/** The last millisecond of the day on which a moment lies. */
export const lastOfDay = (moment: DateTime): DateTime =>
  momentOfLocal(daysLater(localDayOf(moment), 1), moment.zone, 'first').minus(1);

/** The beginning of the hour or minute in which a moment lies, as PostgreSQL cuts it: with the moment's own offset. */
export function startOfClockUnit(moment: DateTime, unit: 'hour' | 'minute'): DateTime {
  const length = unit === 'hour' ? hour : minute;
  const past = ((localOf(moment) % length) + length) % length;
  return moment.minus(past);
}
