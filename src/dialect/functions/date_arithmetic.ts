import { dateDifferenceEmitters, shift, unitInterval } from './emit/date_differences.ts';
import { dateEmitters } from './emit/dates.ts';
import { scalar, standardScalar, type FunctionDefinition } from './function_definition.ts';

/** Arithmetic of dates, times and intervals. */
export const dateArithmeticFunctions: readonly FunctionDefinition[] = [
  scalar('addSeconds', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time plus seconds.', {
    sql: shift('second', '+'),
  }),
  scalar('subtractSeconds', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time minus seconds.', {
    sql: shift('second', '-'),
  }),
  scalar('toIntervalSecond', ['number'], 'interval', 'An interval of seconds.', {
    sql: unitInterval('second'),
  }),
  scalar('addMinutes', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time plus minutes.', {
    sql: shift('minute', '+'),
  }),
  scalar('subtractMinutes', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time minus minutes.', {
    sql: shift('minute', '-'),
  }),
  scalar('toIntervalMinute', ['number'], 'interval', 'An interval of minutes.', {
    sql: unitInterval('minute'),
  }),
  scalar('addHours', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time plus hours.', {
    sql: shift('hour', '+'),
  }),
  scalar('subtractHours', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time minus hours.', {
    sql: shift('hour', '-'),
  }),
  scalar('toIntervalHour', ['number'], 'interval', 'An interval of hours.', {
    sql: unitInterval('hour'),
  }),
  scalar('addDays', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time plus days.', {
    sql: shift('day', '+'),
  }),
  scalar('subtractDays', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time minus days.', {
    sql: shift('day', '-'),
  }),
  scalar('toIntervalDay', ['number'], 'interval', 'An interval of days.', {
    sql: unitInterval('day'),
  }),
  scalar('addWeeks', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time plus weeks.', {
    sql: shift('week', '+'),
  }),
  scalar('subtractWeeks', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time minus weeks.', {
    sql: shift('week', '-'),
  }),
  scalar('toIntervalWeek', ['number'], 'interval', 'An interval of weeks.', {
    sql: unitInterval('week'),
  }),
  scalar('addMonths', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time plus months.', {
    sql: shift('month', '+'),
  }),
  scalar('subtractMonths', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time minus months.', {
    sql: shift('month', '-'),
  }),
  scalar('toIntervalMonth', ['number'], 'interval', 'An interval of months.', {
    sql: unitInterval('month'),
  }),
  scalar('addQuarters', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time plus quarters.', {
    sql: shift('quarter', '+'),
  }),
  scalar('subtractQuarters', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time minus quarters.', {
    sql: shift('quarter', '-'),
  }),
  scalar('toIntervalQuarter', ['number'], 'interval', 'An interval of quarters.', {
    sql: unitInterval('quarter'),
  }),
  scalar('addYears', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time plus years.', {
    sql: shift('year', '+'),
  }),
  scalar('subtractYears', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time minus years.', {
    sql: shift('year', '-'),
  }),
  scalar('toIntervalYear', ['number'], 'interval', 'An interval of years.', {
    sql: unitInterval('year'),
  }),
  scalar(
    'dateDiff',
    ['string', 'date_or_datetime', 'date_or_datetime', 'string?'],
    'integer',
    'Number of unit boundaries between two times.',
    {
      sql: dateDifferenceEmitters.dateDiff,
    },
  ),
  scalar(
    'date_diff',
    ['string', 'date_or_datetime', 'date_or_datetime', 'string?'],
    'integer',
    'Number of unit boundaries between two times.',
    {
      sql: dateDifferenceEmitters.date_diff,
    },
  ),
  scalar(
    'age',
    ['string', 'date_or_datetime', 'date_or_datetime', 'string?'],
    'integer',
    'Number of whole units between two times.',
    {
      sql: dateDifferenceEmitters.age,
    },
  ),
  scalar('dateAdd', ['any', 'any', 'any?'], 'date_or_datetime', 'A time plus an interval.', {
    sql: dateDifferenceEmitters.dateAdd,
  }),
  scalar('dateSub', ['any', 'any', 'any?'], 'date_or_datetime', 'A time minus an interval.', {
    sql: dateDifferenceEmitters.dateSub,
  }),
  standardScalar('make_interval', ['integer...'], 'interval', 'An interval from its parts.', {
    sql: dateEmitters.make_interval,
  }),
];
