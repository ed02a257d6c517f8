import { IANAZone } from 'luxon';

/** An hour of the calendar in some time zone; `month` counts from 1. */
export interface LocalHour {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly hour: number;
}

const dayMs = 24 * 60 * 60_000;
const minuteMs = 60_000;

/**
 * The instant at which a local hour begins in a zone: the first one where DST repeats it, and as long after the gap as
 * it would have been in it where DST skips it. It depends on the zone's rules alone. Luxon's own conversion starts from
 * the zone's offset of today, and so answers another instant for a repeated hour in summer than in winter.
 */
export function instantOfLocalHour({ year, month, day, hour }: LocalHour, timezone: string): Date {
  const zone = IANAZone.create(timezone);
  const local = Date.UTC(year, month - 1, day, hour);
  // Zones change their offset by a day at most, and no zone does it twice within two days.
  const before = zone.offset(local - dayMs);
  const after = zone.offset(local + dayMs);
  const earliestFirst = [before, after].sort((one, other) => other - one);
  for (const offset of earliestFirst) {
    const instant = local - offset * minuteMs;
    if (zone.offset(instant) === offset) return new Date(instant);
  }
  return new Date(local - before * minuteMs);
}
