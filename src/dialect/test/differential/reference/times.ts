import { IANAZone } from 'luxon';
import type { Duration } from './values.ts';

/** A local date and time. Months and days count from 1. */
export interface LocalTime {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  /** Microseconds since midnight. */
  readonly time: bigint;
}

const dayLength = 86_400_000_000n;

const floorDivide = (value: bigint, by: bigint): bigint => {
  const quotient = value / by;
  return value % by < 0n ? quotient - 1n : quotient;
};

const dayNumber = (year: number, month: number, day: number): bigint =>
  BigInt(Date.UTC(year, month - 1, day) / 86_400_000);

const offsetAt = (moment: bigint, zone: string): bigint =>
  BigInt(Math.round(IANAZone.create(zone).offset(Number(floorDivide(moment, 1000n))) * 60)) * 1_000_000n;

function fromLocalMicroseconds(local: bigint): LocalTime {
  const days = floorDivide(local, dayLength);
  const date = new Date(Number(days) * 86_400_000);
  return {
    year: date.getUTCFullYear(),
    month: date.getUTCMonth() + 1,
    day: date.getUTCDate(),
    time: local - days * dayLength,
  };
}

/** The local time of a moment. */
export const toLocal = (moment: bigint, zone: string): LocalTime =>
  fromLocalMicroseconds(moment + offsetAt(moment, zone));

/**
 * The moment of a local time. A time that a clock change skips is that much later; of a repeated one the first occurrence
 * is taken.
 */
function toMoment({ year, month, day, time }: LocalTime, zone: string): bigint {
  const local = dayNumber(year, month, day) * dayLength + time;
  const before = offsetAt(local - dayLength, zone);
  const after = offsetAt(local + dayLength, zone);
  const isFirst = offsetAt(local - before, zone) === before;
  return isFirst || offsetAt(local - after, zone) !== after ? local - before : local - after;
}

/** Parts beyond their range, such as month 13 or day 0, are carried over. */
const normalized = (local: LocalTime): LocalTime =>
  fromLocalMicroseconds(dayNumber(local.year, local.month, local.day) * dayLength + local.time);

/** Adds months, cutting the day to the length of the month, and days. */
function addCalendar(local: LocalTime, months: number, days: number): LocalTime {
  const first = normalized({ ...local, month: local.month + months, day: 1, time: 0n });
  const length = new Date(Date.UTC(first.year, first.month, 0)).getUTCDate();
  return normalized({ ...first, day: Math.min(local.day, length) + days, time: local.time });
}

/** Calendar units keep the local time, and the offset if the result occurs with it; the rest is elapsed time. */
export function addDuration(moment: bigint, { months, days, microseconds }: Duration, zone: string): bigint {
  const target = addCalendar(toLocal(moment, zone), months, days);
  const offset = offsetAt(moment, zone);
  const sameOffset = dayNumber(target.year, target.month, target.day) * dayLength + target.time - offset;
  const shifted = offsetAt(sameOffset, zone) === offset ? sameOffset : toMoment(target, zone);
  return shifted + microseconds;
}

export const addToDate = (date: string, { months, days }: Duration): string =>
  dateText(addCalendar(readDate(date), months, days));

export function readDate(date: string): LocalTime {
  const [year = 0, month = 0, day = 0] = date.split('-').map(Number);
  return { year, month, day, time: 0n };
}

const padded = (value: number, length = 2): string => String(value).padStart(length, '0');

const dateText = ({ year, month, day }: LocalTime): string =>
  `${padded(year, 4)}-${padded(month)}-${padded(day)}`;

export const dateOf = (moment: bigint, zone: string): string => dateText(toLocal(moment, zone));
export const midnightOf = (date: string, zone: string): bigint => toMoment(readDate(date), zone);
export const dayCount = (date: string): bigint => {
  const { year, month, day } = readDate(date);
  return dayNumber(year, month, day);
};

/** `2026-11-23 10:00:00`, with a fraction if there is one. */
export function datetimeText(moment: bigint, zone: string): string {
  const local = toLocal(moment, zone);
  const seconds = local.time / 1_000_000n;
  const fraction = local.time % 1_000_000n;
  const clock = [seconds / 3600n, (seconds / 60n) % 60n, seconds % 60n].map((part) => padded(Number(part)));
  const text = `${dateText(local)} ${clock.join(':')}`;
  return fraction === 0n ? text : `${text}.${padded(Number(fraction), 6)}`;
}

/** Reads `2026-11-23` and `2026-11-23 10:00:00`; undefined for anything else. */
export function parseDatetime(text: string, zone: string): bigint | undefined {
  const match = /^(\d{4})-(\d\d)-(\d\d)(?: (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?)?$/.exec(text);
  if (match === null) return undefined;
  const [year, month, day, hour, minute, second] = match
    .slice(1, 7)
    .map((part: string | undefined) => Number(part ?? 0)) as [number, number, number, number, number, number];
  const local = { year, month, day, time: BigInt(hour * 3600 + minute * 60 + second) * 1_000_000n };
  const isValid = dateText(normalized({ ...local, time: 0n })) === `${match[1]}-${match[2]}-${match[3]}`;
  if (!isValid || hour > 23 || minute > 59 || second > 59) return undefined;
  return toMoment({ ...local, time: local.time + BigInt((match[7] ?? '').padEnd(6, '0')) }, zone);
}

export type TruncationUnit = 'second' | 'minute' | 'hour' | 'day' | 'week' | 'month' | 'quarter' | 'year';

const clockLengths = { second: 1_000_000n, minute: 60_000_000n, hour: 3_600_000_000n } as const;

/** The start of the second, minute or hour of a moment, on the local clock. */
export function startOfClockUnit(moment: bigint, length: bigint, zone: string): bigint {
  const offset = offsetAt(moment, zone);
  return floorDivide(moment + offset, length) * length - offset;
}

/** The first day of the week, month, quarter or year of a date. */
export function startOfDateUnit(date: string, unit: TruncationUnit, weekStart: 'sunday' | 'monday'): string {
  const local = readDate(date);
  switch (unit) {
    case 'week': {
      const weekday = isoWeekday(date);
      const back = weekStart === 'monday' ? weekday - 1 : weekday % 7;
      return dateText(normalized({ ...local, day: local.day - back }));
    }
    case 'month':
      return dateText({ ...local, day: 1 });
    case 'quarter':
      return dateText({ ...local, month: Math.floor((local.month - 1) / 3) * 3 + 1, day: 1 });
    case 'year':
      return dateText({ ...local, month: 1, day: 1 });
    default:
      return date;
  }
}

/** 1 is Monday, 7 is Sunday. */
export const isoWeekday = (date: string): number => ((((Number(dayCount(date)) + 3) % 7) + 7) % 7) + 1;

export const clockLength = (unit: TruncationUnit): bigint | undefined =>
  unit in clockLengths ? clockLengths[unit as keyof typeof clockLengths] : undefined;

/** The number of boundaries of a unit between two moments. */
export function boundariesBetween(from: bigint, to: bigint, unit: TruncationUnit, zone: string): bigint {
  const length = clockLength(unit);
  if (length !== undefined) {
    const start = (moment: bigint): bigint => startOfClockUnit(moment, length, zone);
    return (start(to) - start(from)) / length;
  }
  const [first, second] = [toLocal(from, zone), toLocal(to, zone)];
  switch (unit) {
    case 'day':
      return dayCount(dateText(second)) - dayCount(dateText(first));
    case 'week': {
      const monday = (local: LocalTime): bigint =>
        dayCount(startOfDateUnit(dateText(local), 'week', 'monday'));
      return (monday(second) - monday(first)) / 7n;
    }
    case 'month':
      return BigInt((second.year - first.year) * 12 + second.month - first.month);
    case 'quarter':
      return BigInt(
        (second.year - first.year) * 4 +
          Math.floor((second.month - 1) / 3) -
          Math.floor((first.month - 1) / 3),
      );
    default:
      return BigInt(second.year - first.year);
  }
}
