import { dateFormatEmitters } from './emit/date_formats.ts';
import { dateEmitters } from './emit/dates.ts';
import { scalar, standardScalar, type FunctionDefinition } from './function_definition.ts';

/** The current time, conversions and formats. Times are in the project's zone unless another is given. */
export const timeFunctions: readonly FunctionDefinition[] = [
  standardScalar('now', [], 'datetime', 'The current time.', {
    sql: dateEmitters.now,
  }),
  scalar('today', [], 'date', 'Today.', {
    sql: dateEmitters.today,
  }),
  scalar('yesterday', [], 'date', 'Yesterday.', {
    sql: dateEmitters.yesterday,
  }),
  standardScalar('current_date', [], 'date', 'Today.', {
    sql: dateEmitters.current_date,
  }),
  scalar('toDate', ['any', 'string?'], 'date', 'The value as a date, or null.', {
    sql: dateEmitters.toDate,
  }),
  scalar('toDateTime', ['any', 'string?'], 'datetime', 'The value as a time, or null.', {
    sql: dateEmitters.toDateTime,
  }),
  scalar(
    'toDateTime64',
    ['any', 'integer?', 'string?'],
    'datetime',
    'The value as a time with fractional seconds, or null.',
    {
      ranges: [{ index: 1, min: 0, max: 9 }],
      sql: dateEmitters.toDateTime64,
    },
  ),
  scalar('parseDateTime', ['string', 'string', 'string?'], 'datetime', 'A string in a format as a time.', {
    sql: dateFormatEmitters.parseDateTime,
  }),
  scalar(
    'parseDateTimeBestEffort',
    ['string', 'string?'],
    'datetime',
    'A string in any common format as a time, or null.',
    {
      sql: dateFormatEmitters.parseDateTimeBestEffort,
    },
  ),
  scalar('toTimeZone', ['datetime', 'string'], 'datetime', 'The time in another time zone.', {
    sql: dateEmitters.toTimeZone,
  }),
  scalar('fromUnixTimestamp', ['number'], 'datetime', 'A time from seconds since 1970.', {
    sql: dateEmitters.fromUnixTimestamp,
  }),
  scalar(
    'formatDateTime',
    ['date_or_datetime', 'string', 'string?'],
    'string',
    'A time formatted with % specifiers.',
    {
      sql: dateFormatEmitters.formatDateTime,
    },
  ),
  standardScalar('make_date', ['integer', 'integer', 'integer'], 'date', 'A date from its parts.', {
    sql: dateEmitters.make_date,
  }),
  standardScalar(
    'make_timestamp',
    ['integer', 'integer', 'integer', 'integer', 'integer', 'number'],
    'datetime',
    'A time from its parts.',
    {
      sql: dateEmitters.make_timestamp,
    },
  ),
  standardScalar('to_char', ['any', 'string'], 'string', 'A value in a PostgreSQL format.', {
    sql: dateEmitters.to_char,
  }),
  standardScalar(
    'to_timestamp',
    ['any', 'string?'],
    'datetime',
    'A time from seconds since 1970, or from a string.',
    {
      sql: dateEmitters.to_timestamp,
    },
  ),
];
