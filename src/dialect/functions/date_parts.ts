import { datePartEmitters } from './emit/date_parts.ts';
import { scalar, standardScalar, type FunctionDefinition } from './function_definition.ts';

/** Parts of dates and times. */
export const datePartFunctions: readonly FunctionDefinition[] = [
  scalar('toYear', ['date_or_datetime', 'string?'], 'integer', 'The year.', {
    sql: datePartEmitters.toYear,
    cases: {
      "toYear(toDateTime('2024-01-02 03:04:05'))": 2024,
      "toYear(toDate('1999-12-31'))": 1999,
      'toYear(NULL)': null,
    },
  }),
  scalar('toQuarter', ['date_or_datetime', 'string?'], 'integer', 'The quarter, from 1.', {
    sql: datePartEmitters.toQuarter,
    cases: {
      "toQuarter(toDateTime('2024-01-02 03:04:05'))": 1,
      "toQuarter(toDate('2024-12-31'))": 4,
      'toQuarter(NULL)': null,
    },
  }),
  scalar('toMonth', ['date_or_datetime', 'string?'], 'integer', 'The month, from 1.', {
    sql: datePartEmitters.toMonth,
    cases: {
      "toMonth(toDateTime('2024-01-02 03:04:05'))": 1,
      "toMonth(toDate('2024-12-31'))": 12,
      'toMonth(NULL)': null,
    },
  }),
  scalar('toDayOfYear', ['date_or_datetime', 'string?'], 'integer', 'The day of the year, from 1.', {
    sql: datePartEmitters.toDayOfYear,
    cases: {
      "toDayOfYear(toDateTime('2024-01-02 03:04:05'))": 2,
      "toDayOfYear(toDate('2024-12-31'))": 366,
      'toDayOfYear(NULL)': null,
    },
  }),
  scalar('toDayOfMonth', ['date_or_datetime', 'string?'], 'integer', 'The day of the month.', {
    sql: datePartEmitters.toDayOfMonth,
    cases: {
      "toDayOfMonth(toDateTime('2024-01-02 03:04:05'))": 2,
      "toDayOfMonth(toDate('2024-12-31'))": 31,
      'toDayOfMonth(NULL)': null,
    },
  }),
  scalar('toDayOfWeek', ['date_or_datetime', 'string?'], 'integer', 'The day of the week, 1 is Monday.', {
    sql: datePartEmitters.toDayOfWeek,
    cases: {
      "toDayOfWeek(toDateTime('2024-01-02 03:04:05'))": 2,
      "toDayOfWeek(toDate('2024-01-07'))": 7,
      'toDayOfWeek(NULL)': null,
    },
  }),
  scalar('toHour', ['date_or_datetime', 'string?'], 'integer', 'The hour.', {
    sql: datePartEmitters.toHour,
    cases: {
      "toHour(toDateTime('2024-01-02 03:04:05'))": 3,
      "toHour(toDateTime('2024-07-01T00:00:00Z'))": 20,
      'toHour(NULL)': null,
    },
  }),
  scalar('toMinute', ['date_or_datetime', 'string?'], 'integer', 'The minute.', {
    sql: datePartEmitters.toMinute,
    cases: {
      "toMinute(toDateTime('2024-01-02 03:04:05'))": 4,
      "toMinute(toDateTime('2024-07-01T00:00:00Z'))": 0,
      'toMinute(NULL)': null,
    },
  }),
  scalar('toSecond', ['date_or_datetime', 'string?'], 'integer', 'The second.', {
    sql: datePartEmitters.toSecond,
    cases: {
      "toSecond(toDateTime('2024-01-02 03:04:05'))": 5,
      "toSecond(toDateTime('2024-07-01T00:00:00Z'))": 0,
      'toSecond(NULL)': null,
    },
  }),
  scalar('toUnixTimestamp', ['date_or_datetime', 'string?'], 'integer', 'Seconds since 1970.', {
    sql: datePartEmitters.toUnixTimestamp,
    cases: {
      "toUnixTimestamp(toDateTime('2024-01-02 03:04:05'))": 1704182645,
      "toUnixTimestamp(toDate('2024-01-02'))": 1704153600,
      'toUnixTimestamp(NULL)': null,
    },
  }),
  scalar('toISOWeek', ['date_or_datetime', 'string?'], 'integer', 'The ISO 8601 week.', {
    sql: datePartEmitters.toISOWeek,
    cases: {
      "toISOWeek(toDate('2024-01-01'))": 1,
      "toISOWeek(toDate('2023-01-01'))": 52,
      "toISOWeek(toDate('2020-12-31'))": 53,
    },
  }),
  scalar('toISOYear', ['date_or_datetime', 'string?'], 'integer', 'The ISO 8601 year.', {
    sql: datePartEmitters.toISOYear,
    cases: {
      "toISOYear(toDate('2024-01-01'))": 2024,
      "toISOYear(toDate('2023-01-01'))": 2022,
      "toISOYear(toDate('2020-12-31'))": 2020,
    },
  }),
  scalar('toWeek', ['date_or_datetime', 'integer?', 'string?'], 'integer', 'The week of the year.', {
    sql: datePartEmitters.toWeek,
    cases: {
      "toWeek(toDate('2024-01-01'))": 0,
      "toWeek(toDate('2023-01-01'))": 1,
      "toWeek(toDate('2020-12-31'))": 52,
    },
  }),
  scalar(
    'toYearWeek',
    ['date_or_datetime', 'integer?', 'string?'],
    'integer',
    'Year and week as one number.',
    {
      sql: datePartEmitters.toYearWeek,
      cases: {
        "toYearWeek(toDate('2024-01-01'))": 202353,
        "toYearWeek(toDate('2023-01-01'))": 202301,
        "toYearWeek(toDate('2020-12-31'))": 202052,
      },
    },
  ),
  scalar('toYYYYMM', ['date_or_datetime', 'string?'], 'integer', 'Year and month as one number.', {
    sql: datePartEmitters.toYYYYMM,
    cases: {
      "toYYYYMM(toDateTime('2024-05-02 03:04:05'))": 202405,
      "toYYYYMM(toDate('1999-12-31'))": 199912,
      'toYYYYMM(NULL)': null,
    },
  }),
  scalar('toYYYYMMDD', ['date_or_datetime', 'string?'], 'integer', 'Year, month and day as one number.', {
    sql: datePartEmitters.toYYYYMMDD,
    cases: {
      "toYYYYMMDD(toDateTime('2024-05-02 03:04:05'))": 20240502,
      "toYYYYMMDD(toDate('1999-12-31'))": 19991231,
      'toYYYYMMDD(NULL)': null,
    },
  }),
  standardScalar('date_part', ['string', 'date_or_datetime'], 'float', 'A part of a time.', {
    sql: datePartEmitters.date_part,
    cases: {
      "date_part('year', toDate('2024-05-02'))": 2024,
      "date_part('hour', toDateTime('2024-01-02 13:04:05'))": 13,
      "date_part('dow', toDate('2024-05-05'))": 0,
    },
  }),
  scalar('dateName', ['string', 'date_or_datetime', 'string?'], 'string', 'A part of a time as a name.', {
    sql: datePartEmitters.dateName,
    cases: {
      "dateName('month', toDate('2024-05-02'))": 'May',
      "dateName('weekday', toDate('2024-05-02'))": 'Thursday',
      "dateName('year', toDate('2024-05-02'))": '2024',
    },
  }),
  scalar('monthName', ['date_or_datetime'], 'string', 'The name of the month.', {
    sql: datePartEmitters.monthName,
    cases: {
      "monthName(toDate('2024-05-02'))": 'May',
      "monthName(toDateTime('2024-12-02 03:04:05'))": 'December',
      'monthName(NULL)': null,
    },
  }),
];
