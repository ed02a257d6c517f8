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

/**
 * Returns the instant at which a local hour starts. If DST repeats the hour, the first instant; if DST skips it, the
 * instant shifted past the gap by the hour's distance from the start of the gap. The result depends only on the zone's
 * rules. Luxon's conversion starts from the zone's current offset, so it resolves a repeated hour differently in summer
 * and in winter.
 */
export function instantOfLocalHour({ year, month, day, hour }: LocalHour, timezone: string): Date {
  const zone = IANAZone.create(timezone);
  const local = Date.UTC(year, month - 1, day, hour);
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
