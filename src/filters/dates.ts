import { DateTime } from 'luxon';

/** The error for a field that must be a date. */
export const invalidDateMessage =
  'This is not a valid date. Use ISO 8601, such as 2026-11-21, or a relative date, such as -7d or mStart.';

const isoLike = /^\d{4}/;
const hasOffset = /[T ].*(z|[+-]\d{2}(:?\d{2})?)$/i;
/** No time zone is more than 14 hours away from UTC. */
const noOffset = /[T ].*[+-](1[5-9]|[2-9]\d|\d{2}:?[6-9]\d)(:?\d{2})?$/i;

/** A calendar date, with or without a time. */
export interface AbsoluteDate {
  /** The local time in milliseconds as if it were UTC; the actual time if the text has an offset. */
  readonly local: number;
  /** Microseconds after `local`, 0 to 999. */
  readonly microseconds: number;
  readonly hasOffset: boolean;
  /** Whether it is a date without a time. */
  readonly isDay: boolean;
}

/**
 * Parses ISO 8601, also with a space instead of the T and with months and days without leading zeros; null for anything
 * else.
 */
export function parseAbsoluteDate(text: string): AbsoluteDate | null {
  const trimmed = text.trim();
  if (!isoLike.test(trimmed) || noOffset.test(trimmed)) return null;
  const iso = DateTime.fromISO(trimmed.replace(' ', 'T'), { zone: 'utc' });
  const time = iso.isValid ? iso : DateTime.fromFormat(trimmed, 'yyyy-M-d', { zone: 'utc' });
  if (!time.isValid || time.year < 1000 || time.year > 9999) return null;
  return {
    local: time.toMillis(),
    microseconds: microsecondsOf(trimmed),
    hasOffset: hasOffset.test(trimmed),
    isDay: !/[T ]/i.test(trimmed),
  };
}

/** The fourth to sixth digit of a fraction of a second. Luxon keeps three, PostgreSQL six. */
const microsecondsOf = (text: string): number =>
  Number((/[.,]\d{3}(\d{1,3})/.exec(text)?.[1] ?? '0').padEnd(3, '0'));

/** The last digits of a fraction of a second: empty, or three digits. */
export const microsecondDigits = ({ microseconds }: Pick<AbsoluteDate, 'microseconds'>): string =>
  microseconds === 0 ? '' : String(microseconds).padStart(3, '0');

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

const relative = /^-?(\d{1,7})?([hdwmMsqy])(Start|End)?$/;

/**
 * Parses relative dates such as `-7d`, `dStart` and `-1mEnd`; null for anything else. The sign is ignored: all relative
 * dates are in the past.
 */
export function parseRelativeDate(text: string): RelativeDate | null {
  const [, amount, letter = '', position] = relative.exec(text.trim()) ?? [];
  const unit = units[letter];
  if (unit === undefined || (amount === undefined && position === undefined)) return null;
  return {
    amount: Number(amount ?? 0),
    unit,
    position: position === 'Start' ? 'start' : position === 'End' ? 'end' : null,
  };
}
