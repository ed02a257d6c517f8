import { DateTime, type Zone } from 'luxon';
import { localOf, momentOfLocal } from './local_time.ts';

const isoLike = /^\d{4}/;
const hasOffset = /[T ].*(z|[+-]\d{2}(:?\d{2})?)$/i;
/** No clock on Earth is further than 14 hours from UTC. */
const noOffset = /[T ].*[+-](1[5-9]|[2-9]\d|\d{2}:?[6-9]\d)(:?\d{2})?$/i;

/** A date of a calendar, or a time of it. */
export interface AbsoluteDate {
  /** What clocks show, as milliseconds as if they were UTC; the moment itself where the text has an offset. */
  readonly local: number;
  readonly hasOffset: boolean;
  /** Whether it names a day and no time of it. */
  readonly isDay: boolean;
}

/** Reads ISO 8601, also with a blank in place of the T and without leading zeros of days; null for anything else. */
export function parseAbsoluteDate(text: string): AbsoluteDate | null {
  const trimmed = text.trim();
  if (!isoLike.test(trimmed) || noOffset.test(trimmed)) return null;
  const iso = DateTime.fromISO(trimmed.replace(' ', 'T'), { zone: 'utc' });
  const time = iso.isValid ? iso : DateTime.fromFormat(trimmed, 'yyyy-M-d', { zone: 'utc' });
  if (!time.isValid || time.year < 1000 || time.year > 9999) return null;
  return { local: localOf(time), hasOffset: hasOffset.test(trimmed), isDay: !/[T ]/i.test(trimmed) };
}

/** The moment that a date means in a zone. */
export const momentOfDate = (
  { local, hasOffset }: AbsoluteDate,
  zone: Zone,
  choice: 'first' | 'last',
): DateTime => (hasOffset ? DateTime.fromMillis(local, { zone }) : momentOfLocal(local, zone, choice));
