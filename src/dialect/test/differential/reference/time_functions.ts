import { type FunctionContext, type FunctionEntry, localEntry } from './function_entry.ts';
import {
  addDuration,
  addToDate,
  boundariesBetween,
  clockLength,
  dateOf,
  dayCount,
  isoWeekday,
  midnightOf,
  readDate,
  startOfClockUnit,
  startOfDateUnit,
  toLocal,
  type LocalTime,
  type TruncationUnit,
} from './times.ts';

type Part = (local: LocalTime, date: string) => number;

const clock =
  (divisor: number, modulo: number): Part =>
  ({ time }) =>
    Math.floor(Number(time) / 1e6 / divisor) % modulo;

const parts: Readonly<Record<string, Part>> = {
  toYear: ({ year }) => year,
  toQuarter: ({ month }) => Math.floor((month - 1) / 3) + 1,
  toMonth: ({ month }) => month,
  toDayOfMonth: ({ day }) => day,
  toDayOfWeek: (_, date) => isoWeekday(date),
  toDayOfYear: ({ year }, date) => Number(dayCount(date) - dayCount(`${year}-01-01`)) + 1,
  toHour: clock(3600, 24),
  toMinute: clock(60, 60),
  toSecond: clock(1, 60),
  toYYYYMM: ({ year, month }) => year * 100 + month,
  toYYYYMMDD: ({ year, month, day }) => year * 10_000 + month * 100 + day,
};

const partFunctions = Object.entries(parts).flatMap(([name, part]): readonly FunctionEntry[] => [
  localEntry(
    name,
    ['datetime'],
    'integer',
    ({ zone }) =>
      (moment: bigint) =>
        BigInt(part(toLocal(moment, zone), dateOf(moment, zone))),
  ),
  localEntry(name, ['date'], 'integer', () => (date: string) => BigInt(part(readDate(date), date))),
]);

const dateStarts: Readonly<Record<string, TruncationUnit>> = {
  toStartOfWeek: 'week',
  toStartOfMonth: 'month',
  toStartOfQuarter: 'quarter',
  toStartOfYear: 'year',
};

const dateStartFunctions = Object.entries(dateStarts).flatMap(([name, unit]): readonly FunctionEntry[] => [
  localEntry(
    name,
    ['datetime'],
    'date',
    ({ zone, weekStart }) =>
      (moment: bigint) =>
        startOfDateUnit(dateOf(moment, zone), unit, weekStart),
  ),
  localEntry(
    name,
    ['date'],
    'date',
    ({ weekStart }) =>
      (date: string) =>
        startOfDateUnit(date, unit, weekStart),
  ),
]);

const clockStarts: Readonly<Record<string, number>> = {
  toStartOfHour: 3600,
  toStartOfMinute: 60,
  toStartOfSecond: 1,
  toStartOfFiveMinutes: 300,
  toStartOfTenMinutes: 600,
  toStartOfFifteenMinutes: 900,
};

const clockStartFunctions = Object.entries(clockStarts).map(([name, seconds]) =>
  localEntry(
    name,
    ['datetime'],
    'datetime',
    ({ zone }) =>
      (moment: bigint) =>
        startOfClockUnit(moment, BigInt(seconds) * 1_000_000n, zone),
  ),
);

const shifts = {
  Second: { months: 0, days: 0, seconds: 1 },
  Minute: { months: 0, days: 0, seconds: 60 },
  Hour: { months: 0, days: 0, seconds: 3600 },
  Day: { months: 0, days: 1, seconds: 0 },
  Week: { months: 0, days: 7, seconds: 0 },
  Month: { months: 1, days: 0, seconds: 0 },
  Quarter: { months: 3, days: 0, seconds: 0 },
  Year: { months: 12, days: 0, seconds: 0 },
} as const;

const shiftFunctions = Object.entries(shifts).flatMap(([unit, shift]) =>
  ([1, -1] as const).flatMap((sign): readonly FunctionEntry[] => {
    const name = `${sign === 1 ? 'add' : 'subtract'}${unit}s`;
    const duration = (amount: bigint) => ({
      months: shift.months * Number(amount) * sign,
      days: shift.days * Number(amount) * sign,
      microseconds: BigInt(shift.seconds) * amount * BigInt(sign) * 1_000_000n,
    });
    const onTime = localEntry(
      name,
      ['datetime', 'small'],
      'datetime',
      ({ zone }) =>
        (moment: bigint, amount: bigint) =>
          addDuration(moment, duration(amount), zone),
    );
    if (shift.seconds !== 0) return [onTime];
    return [
      onTime,
      localEntry(
        name,
        ['date', 'small'],
        'date',
        () => (date: string, amount: bigint) => addToDate(date, duration(amount)),
      ),
    ];
  }),
);

const truncated =
  ({ zone }: FunctionContext) =>
  (unit: TruncationUnit, moment: bigint): bigint => {
    const length = clockLength(unit);
    if (length !== undefined) return startOfClockUnit(moment, length, zone);
    return midnightOf(startOfDateUnit(dateOf(moment, zone), unit, 'monday'), zone);
  };

/** Dates and times. */
export const timeFunctions: readonly FunctionEntry[] = [
  ...partFunctions,
  ...dateStartFunctions,
  ...clockStartFunctions,
  ...shiftFunctions,
  localEntry(
    'toStartOfDay',
    ['datetime'],
    'datetime',
    ({ zone }) =>
      (moment: bigint) =>
        midnightOf(dateOf(moment, zone), zone),
  ),
  localEntry(
    'toMonday',
    ['datetime'],
    'date',
    ({ zone }) =>
      (moment: bigint) =>
        startOfDateUnit(dateOf(moment, zone), 'week', 'monday'),
  ),
  localEntry(
    'toDate',
    ['datetime'],
    'date',
    ({ zone }) =>
      (moment: bigint) =>
        dateOf(moment, zone),
  ),
  localEntry(
    'toDateTime',
    ['date'],
    'datetime',
    ({ zone }) =>
      (date: string) =>
        midnightOf(date, zone),
  ),
  localEntry('toUnixTimestamp', ['datetime'], 'integer', () => (moment: bigint) => {
    const seconds = moment / 1_000_000n;
    return moment % 1_000_000n < 0n ? seconds - 1n : seconds;
  }),
  localEntry(
    'dateDiff',
    ['unit', 'datetime', 'datetime'],
    'integer',
    ({ zone }) =>
      (unit: TruncationUnit, from: bigint, to: bigint) =>
        boundariesBetween(from, to, unit, zone),
  ),
  localEntry('dateTrunc', ['unit', 'datetime'], 'datetime', truncated),
];
