import { datePartEmitters } from './emit/date_parts.ts';
import { scalar, standardScalar, type FunctionDefinition } from './function_definition.ts';

/** Parts of dates and times. */
export const datePartFunctions: readonly FunctionDefinition[] = [
  scalar('toYear', ['date_or_datetime', 'string?'], 'integer', 'The year.', {
    sql: datePartEmitters.toYear,
  }),
  scalar('toQuarter', ['date_or_datetime', 'string?'], 'integer', 'The quarter, from 1.', {
    sql: datePartEmitters.toQuarter,
  }),
  scalar('toMonth', ['date_or_datetime', 'string?'], 'integer', 'The month, from 1.', {
    sql: datePartEmitters.toMonth,
  }),
  scalar('toDayOfYear', ['date_or_datetime', 'string?'], 'integer', 'The day of the year, from 1.', {
    sql: datePartEmitters.toDayOfYear,
  }),
  scalar('toDayOfMonth', ['date_or_datetime', 'string?'], 'integer', 'The day of the month.', {
    sql: datePartEmitters.toDayOfMonth,
  }),
  scalar('toDayOfWeek', ['date_or_datetime', 'string?'], 'integer', 'The day of the week, 1 is Monday.', {
    sql: datePartEmitters.toDayOfWeek,
  }),
  scalar('toHour', ['date_or_datetime', 'string?'], 'integer', 'The hour.', {
    sql: datePartEmitters.toHour,
  }),
  scalar('toMinute', ['date_or_datetime', 'string?'], 'integer', 'The minute.', {
    sql: datePartEmitters.toMinute,
  }),
  scalar('toSecond', ['date_or_datetime', 'string?'], 'integer', 'The second.', {
    sql: datePartEmitters.toSecond,
  }),
  scalar('toUnixTimestamp', ['date_or_datetime', 'string?'], 'integer', 'Seconds since 1970.', {
    sql: datePartEmitters.toUnixTimestamp,
  }),
  scalar('toISOWeek', ['date_or_datetime', 'string?'], 'integer', 'The ISO 8601 week.', {
    sql: datePartEmitters.toISOWeek,
  }),
  scalar('toISOYear', ['date_or_datetime', 'string?'], 'integer', 'The ISO 8601 year.', {
    sql: datePartEmitters.toISOYear,
  }),
  scalar('toWeek', ['date_or_datetime', 'integer?', 'string?'], 'integer', 'The week of the year.', {
    sql: datePartEmitters.toWeek,
  }),
  scalar(
    'toYearWeek',
    ['date_or_datetime', 'integer?', 'string?'],
    'integer',
    'Year and week as one number.',
    {
      sql: datePartEmitters.toYearWeek,
    },
  ),
  scalar('toYYYYMM', ['date_or_datetime', 'string?'], 'integer', 'Year and month as one number.', {
    sql: datePartEmitters.toYYYYMM,
  }),
  scalar('toYYYYMMDD', ['date_or_datetime', 'string?'], 'integer', 'Year, month and day as one number.', {
    sql: datePartEmitters.toYYYYMMDD,
  }),
  standardScalar('date_part', ['string', 'date_or_datetime'], 'float', 'A part of a time.', {
    sql: datePartEmitters.date_part,
  }),
  scalar('dateName', ['string', 'date_or_datetime', 'string?'], 'string', 'A part of a time as a name.', {
    sql: datePartEmitters.dateName,
  }),
  scalar('monthName', ['date_or_datetime'], 'string', 'The name of the month.', {
    sql: datePartEmitters.monthName,
  }),
];
