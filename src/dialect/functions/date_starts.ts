import { dateTruncationEmitters } from './emit/date_truncation.ts';
import { dateEmitters } from './emit/dates.ts';
import { scalar, standardScalar, type FunctionDefinition } from './function_definition.ts';

/** Starts and ends of intervals. */
export const dateStartFunctions: readonly FunctionDefinition[] = [
  scalar('toStartOfYear', ['date_or_datetime', 'string?'], 'date', 'The start of the year of a time.', {
    sql: dateTruncationEmitters.toStartOfYear,
    cases: {
      "toStartOfYear(toDateTime('2024-05-02 03:04:05'))": '2024-01-01',
      'toStartOfYear(NULL)': null,
      "toStartOfYear(toDateTime('2024-01-01T02:00:00Z'))": '2023-01-01',
    },
  }),
  scalar('toStartOfQuarter', ['date_or_datetime', 'string?'], 'date', 'The start of the quarter of a time.', {
    sql: dateTruncationEmitters.toStartOfQuarter,
    cases: {
      "toStartOfQuarter(toDateTime('2024-05-02 03:04:05'))": '2024-04-01',
      "toStartOfQuarter(toDate('2024-12-31'))": '2024-10-01',
      'toStartOfQuarter(NULL)': null,
    },
  }),
  scalar('toStartOfMonth', ['date_or_datetime', 'string?'], 'date', 'The start of the month of a time.', {
    sql: dateTruncationEmitters.toStartOfMonth,
    cases: {
      "toStartOfMonth(toDateTime('2024-05-02 03:04:05'))": '2024-05-01',
      "toStartOfMonth(toDate('2024-12-31'))": '2024-12-01',
      'toStartOfMonth(NULL)': null,
    },
  }),
  scalar(
    'toStartOfWeek',
    ['date_or_datetime', 'integer?', 'string?'],
    'date',
    'The first day of the week of a time.',
    {
      ranges: [{ index: 1, min: 0, max: 255 }],
      sql: dateTruncationEmitters.toStartOfWeek,
      cases: {
        "toStartOfWeek(toDateTime('2024-05-02 03:04:05'))": '2024-04-28',
        "toStartOfWeek(toDate('2024-05-05'))": '2024-05-05',
        'toStartOfWeek(NULL)': null,
      },
    },
  ),
  scalar('toStartOfDay', ['date_or_datetime', 'string?'], 'datetime', 'The start of the day of a time.', {
    sql: dateTruncationEmitters.toStartOfDay,
    cases: {
      "toStartOfDay(toDateTime('2024-05-02 03:04:05'))": '2024-05-02T04:00:00Z',
      'toStartOfDay(NULL)': null,
      "toStartOfDay(toDateTime('2024-03-10T12:00:00Z'))": '2024-03-10T05:00:00Z',
    },
  }),
  scalar('toStartOfHour', ['date_or_datetime', 'string?'], 'datetime', 'The start of the hour of a time.', {
    sql: dateTruncationEmitters.toStartOfHour,
    cases: {
      "toStartOfHour(toDateTime('2024-05-02 03:04:05'))": '2024-05-02T07:00:00Z',
      'toStartOfHour(NULL)': null,
      "toStartOfHour(toDateTime('2024-11-03T05:30:00Z'))": '2024-11-03T05:00:00Z',
    },
  }),
  scalar(
    'toStartOfMinute',
    ['date_or_datetime', 'string?'],
    'datetime',
    'The start of the minute of a time.',
    {
      sql: dateTruncationEmitters.toStartOfMinute,
      cases: {
        "toStartOfMinute(toDateTime('2024-05-02 03:04:05'))": '2024-05-02T07:04:00Z',
        'toStartOfMinute(NULL)': null,
        "toStartOfMinute(toDateTime('2024-11-03T06:30:59Z'))": '2024-11-03T06:30:00Z',
      },
    },
  ),
  scalar(
    'toStartOfSecond',
    ['date_or_datetime', 'string?'],
    'datetime',
    'The start of the second of a time.',
    {
      sql: dateTruncationEmitters.toStartOfSecond,
      cases: {
        "toStartOfSecond(toDateTime64('2024-05-02 03:04:05.678', 3))": '2024-05-02T07:04:05.000Z',
        'toStartOfSecond(NULL)': null,
      },
    },
  ),
  scalar(
    'toStartOfFiveMinutes',
    ['date_or_datetime', 'string?'],
    'datetime',
    'The start of the five-minute interval of a time.',
    {
      sql: dateTruncationEmitters.toStartOfFiveMinutes,
      cases: {
        "toStartOfFiveMinutes(toDateTime('2024-05-02 03:04:05'))": '2024-05-02T07:00:00Z',
        'toStartOfFiveMinutes(NULL)': null,
        "toStartOfFiveMinutes(toDateTime('2024-05-02 03:59:59'))": '2024-05-02T07:55:00Z',
      },
    },
  ),
  scalar(
    'toStartOfTenMinutes',
    ['date_or_datetime', 'string?'],
    'datetime',
    'The start of the ten-minute interval of a time.',
    {
      sql: dateTruncationEmitters.toStartOfTenMinutes,
      cases: {
        "toStartOfTenMinutes(toDateTime('2024-05-02 03:14:05'))": '2024-05-02T07:10:00Z',
        'toStartOfTenMinutes(NULL)': null,
        "toStartOfTenMinutes(toDateTime('2024-11-03T06:39:00Z'))": '2024-11-03T06:30:00Z',
      },
    },
  ),
  scalar(
    'toStartOfFifteenMinutes',
    ['date_or_datetime', 'string?'],
    'datetime',
    'The start of the fifteen-minute interval of a time.',
    {
      sql: dateTruncationEmitters.toStartOfFifteenMinutes,
      cases: {
        "toStartOfFifteenMinutes(toDateTime('2024-05-02 03:14:05'))": '2024-05-02T07:00:00Z',
        'toStartOfFifteenMinutes(NULL)': null,
        "toStartOfFifteenMinutes(toDateTime('2024-05-02 03:45:00'))": '2024-05-02T07:45:00Z',
      },
    },
  ),
  scalar(
    'toStartOfInterval',
    ['date_or_datetime', 'interval', 'string?'],
    'datetime',
    'The start of the interval of a time.',
    {
      sql: dateTruncationEmitters.toStartOfInterval,
      cases: {
        "toStartOfInterval(toDateTime('2024-05-02 03:14:05'), INTERVAL 1 DAY)": '2024-05-02T04:00:00Z',
        "toStartOfInterval(toDateTime('2024-05-02 03:14:05'), INTERVAL 2 HOUR)": '2024-05-02T06:00:00Z',
        "toStartOfInterval(toDateTime('2024-05-02 03:14:05'), INTERVAL 1 MONTH)": '2024-05-01',
      },
    },
  ),
  scalar('toMonday', ['date_or_datetime', 'string?'], 'date', 'The Monday of the week of a time.', {
    sql: dateTruncationEmitters.toMonday,
    cases: {
      "toMonday(toDateTime('2024-05-02 03:04:05'))": '2024-04-29',
      'toMonday(NULL)': null,
      "toMonday(toDate('2024-05-06'))": '2024-05-06',
    },
  }),
  scalar(
    'toLastDayOfMonth',
    ['date_or_datetime', 'string?'],
    'date',
    'The last day of the month of a time.',
    {
      sql: dateTruncationEmitters.toLastDayOfMonth,
      cases: {
        "toLastDayOfMonth(toDateTime('2024-02-02 03:04:05'))": '2024-02-29',
        "toLastDayOfMonth(toDate('2023-02-05'))": '2023-02-28',
        'toLastDayOfMonth(NULL)': null,
      },
    },
  ),
  scalar(
    'dateTrunc',
    ['string', 'date_or_datetime', 'string?'],
    'date_or_datetime',
    'The time truncated to a unit.',
    {
      sql: dateTruncationEmitters.dateTrunc,
      cases: {
        "dateTrunc('day', toDateTime('2024-05-02 03:04:05'))": '2024-05-02T04:00:00Z',
        "dateTrunc('month', toDateTime('2024-05-02 03:04:05'))": '2024-05-01',
        "dateTrunc('hour', toDateTime('2024-05-02 03:04:05'))": '2024-05-02T07:00:00Z',
      },
    },
  ),
  standardScalar(
    'date_trunc',
    ['string', 'date_or_datetime', 'string?'],
    'date_or_datetime',
    'The time truncated to a unit.',
    {
      sql: dateTruncationEmitters.date_trunc,
      cases: {
        "date_trunc('day', toDateTime('2024-05-02 03:04:05'))": '2024-05-02T04:00:00Z',
        "date_trunc('month', toDateTime('2024-05-02 03:04:05'))": '2024-05-01',
        "date_trunc('hour', toDateTime('2024-05-02 03:04:05'))": '2024-05-02T07:00:00Z',
      },
    },
  ),
  scalar('timeSlot', ['datetime'], 'datetime', 'The start of the half hour of a time.', {
    sql: dateTruncationEmitters.timeSlot,
    cases: {
      "timeSlot(toDateTime('2024-05-02 03:14:05'))": '2024-05-02T07:00:00Z',
      "timeSlot(toDateTime('2024-05-02 03:44:05'))": '2024-05-02T07:30:00Z',
      'timeSlot(NULL)': null,
    },
  }),
  standardScalar(
    'date_bin',
    ['interval', 'datetime', 'datetime'],
    'datetime',
    'The start of the bin of a time.',
    {
      sql: dateEmitters.date_bin,
      cases: {
        "date_bin(INTERVAL 15 MINUTE, toDateTime('2024-01-01 10:20:00'), toDateTime('2024-01-01 00:00:00'))":
          '2024-01-01T15:15:00Z',
        "date_bin(INTERVAL 0 MINUTE, toDateTime('2024-01-01 10:20:00'), toDateTime('2024-01-01 00:00:00'))":
          null,
      },
    },
  ),
];
