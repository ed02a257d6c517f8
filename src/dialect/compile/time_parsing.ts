import { DateTime } from 'luxon';
import { instantOfLocalTime } from '../../domain/local_hour.ts';

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
