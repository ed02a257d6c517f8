import { dateFormatEmitters } from './emit/date_formats.ts';
import { dateEmitters } from './emit/dates.ts';
import { scalar, standardScalar, type FunctionDefinition } from './function_definition.ts';

/** The current time, conversions and formats. Times are in the project's zone unless another is given. */
export const timeFunctions: readonly FunctionDefinition[] = [
  standardScalar('now', [], 'datetime', 'The current time.', {
    sql: dateEmitters.now,
    cases: { "now() > toDateTime('2024-01-01 00:00:00')": 1, "dateDiff('day', now(), now())": 0 },
  }),
  scalar('today', [], 'date', 'Today.', {
    sql: dateEmitters.today,
    cases: { "today() > toDate('2024-01-01')": 1 },
  }),
  scalar('yesterday', [], 'date', 'Yesterday.', {
    sql: dateEmitters.yesterday,
    cases: { 'yesterday() < today()': 1, "dateDiff('day', today(), yesterday())": -1 },
  }),
  standardScalar('current_date', [], 'date', 'Today.', {
    sql: dateEmitters.current_date,
    cases: { 'current_date() = today()': 1 },
  }),
  scalar('toDate', ['any', 'string?'], 'date', 'The value as a date, or null.', {
    sql: dateEmitters.toDate,
    cases: {
      "toDate('2024-01-02')": '2024-01-02',
      "toDate('')": null,
      "toDate(toDateTime('2024-03-10 23:30:00'))": '2024-03-10',
    },
  }),
  scalar('toDateTime', ['any', 'string?'], 'datetime', 'The value as a time, or null.', {
    sql: dateEmitters.toDateTime,
    cases: {
      "toDateTime('2024-01-02 03:04:05')": '2024-01-02T08:04:05Z',
      "toDateTime('2024-01-02')": '2024-01-02T05:00:00Z',
      "toDateTime('2024-01-02T03:04:05Z')": '2024-01-02T03:04:05Z',
    },
  }),
  scalar(
    'toDateTime64',
    ['any', 'integer?', 'string?'],
    'datetime',
    'The value as a time with fractional seconds, or null.',
    {
      ranges: [{ index: 1, min: 0, max: 9 }],
      sql: dateEmitters.toDateTime64,
      cases: {
        "toDateTime64('2024-01-02 03:04:05.678', 3)": '2024-01-02T08:04:05.678Z',
        "toDateTime64('2024-01-02 03:04:05', 6)": '2024-01-02T08:04:05Z',
        'toDateTime64(NULL, 3)': null,
      },
    },
  ),
  scalar('parseDateTime', ['string', 'string', 'string?'], 'datetime', 'A string in a format as a time.', {
    sql: dateFormatEmitters.parseDateTime,
    cases: {
      "parseDateTime('2024-01-02 03:04:05', '%Y-%m-%d %H:%i:%s')": '2024-01-02T08:04:05Z',
      "parseDateTime('02/01/2024', '%d/%m/%Y')": '2024-01-02T05:00:00Z',
      "parseDateTime('abc', '%Y')": null,
    },
  }),
  scalar(
    'parseDateTimeBestEffort',
    ['string', 'string?'],
    'datetime',
    'A string in any common format as a time, or null.',
    {
      sql: dateFormatEmitters.parseDateTimeBestEffort,
      cases: {
        "parseDateTimeBestEffort('2024-01-02 03:04:05')": '2024-01-02T08:04:05Z',
        "parseDateTimeBestEffort('2024-01-02T03:04:05Z')": '2024-01-02T03:04:05Z',
        "parseDateTimeBestEffort('abc')": null,
      },
    },
  ),
  scalar('toTimeZone', ['datetime', 'string'], 'datetime', 'The time in another time zone.', {
    sql: dateEmitters.toTimeZone,
    cases: {
      "toHour(toTimeZone(toDateTime('2024-01-02 03:04:05'), 'UTC'))": 8,
      "toDate(toTimeZone(toDateTime('2024-01-02 23:04:05'), 'Asia/Tokyo'))": '2024-01-03',
      "toTimeZone(NULL, 'UTC')": null,
    },
  }),
  scalar('fromUnixTimestamp', ['number'], 'datetime', 'A time from seconds since 1970.', {
    sql: dateEmitters.fromUnixTimestamp,
    cases: {
      'fromUnixTimestamp(1704164645)': '2024-01-02T03:04:05Z',
      'fromUnixTimestamp(0)': '1970-01-01T00:00:00Z',
      'fromUnixTimestamp(NULL)': null,
    },
  }),
  scalar(
    'formatDateTime',
    ['date_or_datetime', 'string', 'string?'],
    'string',
    'A time formatted with % specifiers.',
    {
      sql: dateFormatEmitters.formatDateTime,
      cases: {
        "formatDateTime(toDateTime('2024-05-02 03:04:05'), '%Y-%m-%d %H:%i:%S')": '2024-05-02 03:04:05',
        "formatDateTime(toDateTime('2024-05-02 13:04:05'), '%y %e %I %p')": '24 2 01 PM',
        "formatDateTime(toDate('2024-05-02'), '%F')": '2024-05-02',
      },
    },
  ),
  standardScalar('make_date', ['integer', 'integer', 'integer'], 'date', 'A date from its parts.', {
    sql: dateEmitters.make_date,
    cases: {
      'make_date(2024, 1, 1)': '2024-01-01',
      'make_date(2024, 12, 31)': '2024-12-31',
      'make_date(2024, 2, 29)': '2024-02-29',
    },
  }),
  standardScalar(
    'make_timestamp',
    ['integer', 'integer', 'integer', 'integer', 'integer', 'number'],
    'datetime',
    'A time from its parts.',
    {
      sql: dateEmitters.make_timestamp,
      cases: {
        'make_timestamp(2024, 1, 2, 3, 4, 5.5)': '2024-01-02T08:04:05.500Z',
        'make_timestamp(2024, 1, 2, 25, 4, 5)': null,
        'make_timestamp(2024, 7, 1, 0, 0, 0)': '2024-07-01T04:00:00Z',
      },
    },
  ),
  standardScalar('to_char', ['any', 'string'], 'string', 'A value in a PostgreSQL format.', {
    sql: dateEmitters.to_char,
    cases: {
      "to_char(toDateTime('2024-01-02 13:04:05'), 'YYYY/MM/DD HH24')": '2024/01/02 13',
      "to_char(toDate('2024-01-02'), 'Mon')": 'Jan',
      "to_char(1234.5, 'FM9999.00')": '1234.50',
    },
  }),
  standardScalar(
    'to_timestamp',
    ['any', 'string?'],
    'datetime',
    'A time from seconds since 1970, or from a string.',
    {
      sql: dateEmitters.to_timestamp,
      cases: {
        'to_timestamp(1704164645)': '2024-01-02T03:04:05Z',
        'to_timestamp(NULL)': null,
        "to_timestamp('2024-01-02 00:00:00')": '2024-01-02T05:00:00Z',
      },
    },
  ),
];
