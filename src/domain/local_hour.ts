import { IANAZone } from 'luxon';

/** An hour of the calendar in a time zone; `month` is 1 to 12. */
export interface LocalHour {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly hour: number;
}

const dayMs = 24 * 60 * 60_000;
const minuteMs = 60_000;

/** The instant at which a local hour starts, as in `instantOfLocalTime`. */
export const instantOfLocalHour = ({ year, month, day, hour }: LocalHour, timezone: string): Date =>
  instantOfLocalTime(Date.UTC(year, month - 1, day, hour), timezone);

/**
 * Returns the instant of a local time, which is given in milliseconds as if it were UTC. If DST repeats the time, the
 * first instant; if DST skips it, the instant shifted past the gap by the time's distance from the start of the gap. The
 * result depends only on the zone's rules. Luxon's conversion starts from the zone's current offset, so it resolves a
 * repeated time differently in summer and in winter.
 */
export function instantOfLocalTime(local: number, timezone: string): Date {
  const zone = IANAZone.create(timezone);
  // A zone changes its offset by at most a day, and never twice within two days.
  const before = zone.offset(local - dayMs);
  const after = zone.offset(local + dayMs);
  const earliestFirst = [before, after].sort((one, other) => other - one);
  for (const offset of earliestFirst) {
    const instant = local - offset * minuteMs;
    if (zone.offset(instant) === offset) return new Date(instant);
  }
  return new Date(local - before * minuteMs);
}
