import { dateTruncationEmitters } from './emit/date_truncation.ts';
import { dateEmitters } from './emit/dates.ts';
import { scalar, standardScalar, type FunctionDefinition } from './function_definition.ts';

/** Starts and ends of intervals. */
export const dateStartFunctions: readonly FunctionDefinition[] = [
  scalar('toStartOfYear', ['date_or_datetime', 'string?'], 'date', 'The start of the year of a time.', {
    sql: dateTruncationEmitters.toStartOfYear,
  }),
  scalar('toStartOfQuarter', ['date_or_datetime', 'string?'], 'date', 'The start of the quarter of a time.', {
    sql: dateTruncationEmitters.toStartOfQuarter,
  }),
  scalar('toStartOfMonth', ['date_or_datetime', 'string?'], 'date', 'The start of the month of a time.', {
    sql: dateTruncationEmitters.toStartOfMonth,
  }),
  scalar(
    'toStartOfWeek',
    ['date_or_datetime', 'integer?', 'string?'],
    'date',
    'The first day of the week of a time.',
    {
      ranges: [{ index: 1, min: 0, max: 255 }],
      sql: dateTruncationEmitters.toStartOfWeek,
    },
  ),
  scalar('toStartOfDay', ['date_or_datetime', 'string?'], 'datetime', 'The start of the day of a time.', {
    sql: dateTruncationEmitters.toStartOfDay,
  }),
  scalar('toStartOfHour', ['date_or_datetime', 'string?'], 'datetime', 'The start of the hour of a time.', {
    sql: dateTruncationEmitters.toStartOfHour,
  }),
  scalar(
    'toStartOfMinute',
    ['date_or_datetime', 'string?'],
    'datetime',
    'The start of the minute of a time.',
    {
      sql: dateTruncationEmitters.toStartOfMinute,
    },
  ),
  scalar(
    'toStartOfSecond',
    ['date_or_datetime', 'string?'],
    'datetime',
    'The start of the second of a time.',
    {
      sql: dateTruncationEmitters.toStartOfSecond,
    },
  ),
  scalar(
    'toStartOfFiveMinutes',
    ['date_or_datetime', 'string?'],
    'datetime',
    'The start of the five-minute interval of a time.',
    {
      sql: dateTruncationEmitters.toStartOfFiveMinutes,
    },
  ),
  scalar(
    'toStartOfTenMinutes',
    ['date_or_datetime', 'string?'],
    'datetime',
    'The start of the ten-minute interval of a time.',
    {
      sql: dateTruncationEmitters.toStartOfTenMinutes,
    },
  ),
  scalar(
    'toStartOfFifteenMinutes',
    ['date_or_datetime', 'string?'],
    'datetime',
    'The start of the fifteen-minute interval of a time.',
    {
      sql: dateTruncationEmitters.toStartOfFifteenMinutes,
    },
  ),
  scalar(
    'toStartOfInterval',
    ['date_or_datetime', 'interval', 'string?'],
    'datetime',
    'The start of the interval of a time.',
    {
      sql: dateTruncationEmitters.toStartOfInterval,
    },
  ),
  scalar('toMonday', ['date_or_datetime', 'string?'], 'date', 'The Monday of the week of a time.', {
    sql: dateTruncationEmitters.toMonday,
  }),
  scalar(
    'toLastDayOfMonth',
    ['date_or_datetime', 'string?'],
    'date',
    'The last day of the month of a time.',
    {
      sql: dateTruncationEmitters.toLastDayOfMonth,
    },
  ),
  scalar(
    'dateTrunc',
    ['string', 'date_or_datetime', 'string?'],
    'date_or_datetime',
    'The time truncated to a unit.',
    {
      sql: dateTruncationEmitters.dateTrunc,
    },
  ),
  standardScalar(
    'date_trunc',
    ['string', 'date_or_datetime', 'string?'],
    'date_or_datetime',
    'The time truncated to a unit.',
    {
      sql: dateTruncationEmitters.date_trunc,
    },
  ),
  scalar('timeSlot', ['datetime'], 'datetime', 'The start of the half hour of a time.', {
    sql: dateTruncationEmitters.timeSlot,
  }),
  standardScalar(
    'date_bin',
    ['interval', 'datetime', 'datetime'],
    'datetime',
    'The start of the bin of a time.',
    {
      sql: dateEmitters.date_bin,
    },
  ),
];
