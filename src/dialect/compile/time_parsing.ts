import { DateTime, IANAZone } from 'luxon';

const timePattern =
  /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(?::(\d{2})(\.\d{1,9})?)?)?(Z|[+-]\d{2}(?::?\d{2})?)?$/i;

/** Parses a time to UTC text that PostgreSQL reads; without an offset it is in the zone. Null if it is not a time. */
export function parseTime(text: string, timezone: string): string | null {
  const match = timePattern.exec(text.trim());
  if (match === null) return /^\d{1,12}$/.test(text.trim()) ? fromSeconds(Number(text)) : null;
  const [, day = '', clock = '00:00', seconds = '00', fraction = '', offset] = match;
  const local = `${day}T${clock}:${seconds}`;
  const time = DateTime.fromISO(`${local}${offset ?? 'Z'}`, { zone: 'utc' });
  if (!time.isValid || day.startsWith('0000')) return null;
  const moment = offset === undefined ? instantOfLocalTime(time.toMillis(), timezone) : time.toJSDate();
  const formatted = DateTime.fromJSDate(moment, { zone: 'utc' }).toFormat("yyyy-MM-dd'T'HH:mm:ss");
  return `${formatted}${fraction.slice(0, 7)}Z`;
}

const fromSeconds = (seconds: number): string => {
  const time = DateTime.fromSeconds(seconds, { zone: 'utc' });
  return time.toFormat("yyyy-MM-dd'T'HH:mm:ss'Z'");
};

/** The day of a date or time, or null. */
export function parseDate(text: string, timezone: string): string | null {
  const time = parseTime(text, timezone);
  if (time === null) return null;
  if (/^\d{4}-\d{2}-\d{2}$/.test(text.trim())) return text.trim();
  return DateTime.fromISO(time, { zone: timezone }).toISODate();
}

const dayMs = 24 * 60 * 60_000;
const minuteMs = 60_000;

/**
 * The instant of a local time, which is given in milliseconds as if it were UTC: of a time that a clock change repeats the
 * first one; a time that a clock change skips is moved forward by the length of the gap. Luxon's conversion starts from
 * the zone's current offset, so it resolves a repeated time differently in summer and in winter.
 */
function instantOfLocalTime(local: number, timezone: string): Date {
  const zone = IANAZone.create(timezone);
  // A zone changes its offset by at most a day, and never twice within two days.
  const before = zone.offset(local - dayMs);
  const after = zone.offset(local + dayMs);
  for (const offset of [Math.max(before, after), Math.min(before, after)]) {
    const instant = local - offset * minuteMs;
    if (zone.offset(instant) === offset) return new Date(instant);
  }
  return new Date(local - before * minuteMs);
}
