import { dateDifferenceEmitters, shift, unitInterval } from './emit/date_differences.ts';
import { dateEmitters } from './emit/dates.ts';
import { scalar, standardScalar, type FunctionDefinition } from './function_definition.ts';

/** Arithmetic of dates, times and intervals. */
export const dateArithmeticFunctions: readonly FunctionDefinition[] = [
  scalar('addSeconds', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time plus seconds.', {
    sql: shift('second', '+'),
    cases: {
      "addSeconds(toDateTime('2024-01-01 23:59:59'), 1)": '2024-01-02T05:00:00Z',
      "addSeconds(toDateTime('2024-01-01 00:00:00'), -1)": '2024-01-01T04:59:59Z',
      'addSeconds(NULL, 1)': null,
    },
  }),
  scalar('subtractSeconds', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time minus seconds.', {
    sql: shift('second', '-'),
    cases: {
      "subtractSeconds(toDateTime('2024-01-01 00:00:00'), 1)": '2024-01-01T04:59:59Z',
      'subtractSeconds(NULL, 1)': null,
      "subtractSeconds(toDateTime('2024-01-01 00:00:00'), 0)": '2024-01-01T05:00:00Z',
    },
  }),
  scalar('toIntervalSecond', ['number'], 'interval', 'An interval of seconds.', {
    sql: unitInterval('second'),
    cases: {
      "toDateTime('2024-01-01 00:00:00') + toIntervalSecond(90)": '2024-01-01T05:01:30Z',
      "toDateTime('2024-01-01 00:00:00') - toIntervalSecond(1)": '2024-01-01T04:59:59Z',
      "toDateTime('2024-01-01 00:00:00') + toIntervalSecond(0)": '2024-01-01T05:00:00Z',
    },
  }),
  scalar('addMinutes', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time plus minutes.', {
    sql: shift('minute', '+'),
    cases: {
      "addMinutes(toDateTime('2024-01-01 23:59:59'), 1)": '2024-01-02T05:00:59Z',
      "addMinutes(toDateTime('2024-01-01 00:00:00'), -1)": '2024-01-01T04:59:00Z',
      'addMinutes(NULL, 1)': null,
    },
  }),
  scalar('subtractMinutes', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time minus minutes.', {
    sql: shift('minute', '-'),
    cases: {
      "subtractMinutes(toDateTime('2024-01-01 00:00:00'), 1)": '2024-01-01T04:59:00Z',
      'subtractMinutes(NULL, 1)': null,
      "subtractMinutes(toDateTime('2024-01-01 00:00:00'), -5)": '2024-01-01T05:05:00Z',
    },
  }),
  scalar('toIntervalMinute', ['number'], 'interval', 'An interval of minutes.', {
    sql: unitInterval('minute'),
    cases: {
      "toDateTime('2024-01-01 00:00:00') + toIntervalMinute(90)": '2024-01-01T06:30:00Z',
      "toDateTime('2024-01-01 00:00:00') - toIntervalMinute(1)": '2024-01-01T04:59:00Z',
      "toDateTime('2024-01-01 00:00:00') + toIntervalMinute(0)": '2024-01-01T05:00:00Z',
    },
  }),
  scalar('addHours', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time plus hours.', {
    sql: shift('hour', '+'),
    cases: {
      "addHours(toDateTime('2024-01-01 23:59:59'), 1)": '2024-01-02T05:59:59Z',
      "addHours(toDateTime('2024-03-10T06:30:00Z'), 1)": '2024-03-10T07:30:00Z',
      'addHours(NULL, 1)': null,
    },
  }),
  scalar('subtractHours', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time minus hours.', {
    sql: shift('hour', '-'),
    cases: {
      "subtractHours(toDateTime('2024-01-01 00:00:00'), 1)": '2024-01-01T04:00:00Z',
      'subtractHours(NULL, 1)': null,
      "subtractHours(toDateTime('2024-11-03T06:30:00Z'), 1)": '2024-11-03T05:30:00Z',
    },
  }),
  scalar('toIntervalHour', ['number'], 'interval', 'An interval of hours.', {
    sql: unitInterval('hour'),
    cases: {
      "toDateTime('2024-01-01 00:00:00') + toIntervalHour(90)": '2024-01-04T23:00:00Z',
      "toDateTime('2024-01-01 00:00:00') - toIntervalHour(1)": '2024-01-01T04:00:00Z',
      "toDateTime('2024-01-01 00:00:00') + toIntervalHour(0)": '2024-01-01T05:00:00Z',
    },
  }),
  scalar('addDays', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time plus days.', {
    sql: shift('day', '+'),
    cases: {
      "addDays(toDateTime('2024-02-28 23:59:59'), 1)": '2024-03-01T04:59:59Z',
      "addDays(toDateTime('2024-03-09T17:30:00Z'), 1)": '2024-03-10T16:30:00Z',
      'addDays(NULL, 1)': null,
    },
  }),
  scalar('subtractDays', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time minus days.', {
    sql: shift('day', '-'),
    cases: {
      "subtractDays(toDateTime('2024-03-01 00:00:00'), 1)": '2024-02-29T05:00:00Z',
      'subtractDays(NULL, 1)': null,
      "subtractDays(toDate('2024-01-01'), 1)": '2023-12-31',
    },
  }),
  scalar('toIntervalDay', ['number'], 'interval', 'An interval of days.', {
    sql: unitInterval('day'),
    cases: {
      "toDate('2024-01-31') + toIntervalDay(1)": '2024-02-01',
      "toDate('2024-03-31') - toIntervalDay(1)": '2024-03-30',
      "toDateTime('2024-02-29 10:00:00') + toIntervalDay(3)": '2024-03-03T15:00:00Z',
    },
  }),
  scalar('addWeeks', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time plus weeks.', {
    sql: shift('week', '+'),
    cases: {
      "addWeeks(toDateTime('2024-02-28 23:59:59'), 1)": '2024-03-07T04:59:59Z',
      "addWeeks(toDate('2024-01-01'), -1)": '2023-12-25',
      'addWeeks(NULL, 1)': null,
    },
  }),
  scalar('subtractWeeks', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time minus weeks.', {
    sql: shift('week', '-'),
    cases: {
      "subtractWeeks(toDateTime('2024-03-01 00:00:00'), 1)": '2024-02-23T05:00:00Z',
      'subtractWeeks(NULL, 1)': null,
      "subtractWeeks(toDate('2024-01-01'), 1)": '2023-12-25',
    },
  }),
  scalar('toIntervalWeek', ['number'], 'interval', 'An interval of weeks.', {
    sql: unitInterval('week'),
    cases: {
      "toDate('2024-01-31') + toIntervalWeek(1)": '2024-02-07',
      "toDate('2024-03-31') - toIntervalWeek(1)": '2024-03-24',
      "toDateTime('2024-02-29 10:00:00') + toIntervalWeek(3)": '2024-03-21T14:00:00Z',
    },
  }),
  scalar('addMonths', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time plus months.', {
    sql: shift('month', '+'),
    cases: {
      "addMonths(toDateTime('2024-01-31 23:59:59'), 1)": '2024-03-01T04:59:59Z',
      "addMonths(toDate('2024-03-31'), -1)": '2024-02-29',
      'addMonths(NULL, 1)': null,
    },
  }),
  scalar('subtractMonths', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time minus months.', {
    sql: shift('month', '-'),
    cases: {
      "subtractMonths(toDateTime('2024-03-31 00:00:00'), 1)": '2024-02-29T05:00:00Z',
      'subtractMonths(NULL, 1)': null,
      "subtractMonths(toDate('2024-01-01'), 1)": '2023-12-01',
    },
  }),
  scalar('toIntervalMonth', ['number'], 'interval', 'An interval of months.', {
    sql: unitInterval('month'),
    cases: {
      "toDate('2024-01-31') + toIntervalMonth(1)": '2024-02-29',
      "toDateTime('2024-02-29 10:00:00') + toIntervalMonth(3)": '2024-05-29T14:00:00Z',
      "toDate('2024-01-31') + toIntervalMonth(0)": '2024-01-31',
    },
  }),
  scalar('addQuarters', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time plus quarters.', {
    sql: shift('quarter', '+'),
    cases: {
      "addQuarters(toDateTime('2024-01-31 23:59:59'), 1)": '2024-05-01T03:59:59Z',
      "addQuarters(toDate('2024-03-31'), -1)": '2023-12-31',
      'addQuarters(NULL, 1)': null,
    },
  }),
  scalar('subtractQuarters', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time minus quarters.', {
    sql: shift('quarter', '-'),
    cases: {
      "subtractQuarters(toDateTime('2024-05-31 00:00:00'), 1)": '2024-02-29T05:00:00Z',
      'subtractQuarters(NULL, 1)': null,
      "subtractQuarters(toDate('2024-01-01'), 1)": '2023-10-01',
    },
  }),
  scalar('toIntervalQuarter', ['number'], 'interval', 'An interval of quarters.', {
    sql: unitInterval('quarter'),
    cases: {
      "toDate('2024-01-31') + toIntervalQuarter(1)": '2024-04-30',
      "toDate('2024-03-31') - toIntervalQuarter(1)": '2023-12-31',
      "toDateTime('2024-02-29 10:00:00') + toIntervalQuarter(3)": '2024-11-29T15:00:00Z',
    },
  }),
  scalar('addYears', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time plus years.', {
    sql: shift('year', '+'),
    cases: {
      "addYears(toDateTime('2024-02-29 23:59:59'), 1)": '2025-03-01T04:59:59Z',
      "addYears(toDate('2024-03-31'), -1)": '2023-03-31',
      'addYears(NULL, 1)': null,
    },
  }),
  scalar('subtractYears', ['date_or_datetime', 'number'], 'date_or_datetime', 'A time minus years.', {
    sql: shift('year', '-'),
    cases: {
      "subtractYears(toDateTime('2024-02-29 00:00:00'), 1)": '2023-02-28T05:00:00Z',
      'subtractYears(NULL, 1)': null,
      "subtractYears(toDate('2024-01-01'), 1)": '2023-01-01',
    },
  }),
  scalar('toIntervalYear', ['number'], 'interval', 'An interval of years.', {
    sql: unitInterval('year'),
    cases: {
      "toDate('2024-01-31') + toIntervalYear(1)": '2025-01-31',
      "toDate('2024-03-31') - toIntervalYear(1)": '2023-03-31',
      "toDateTime('2024-02-29 10:00:00') + toIntervalYear(3)": '2027-02-28T15:00:00Z',
    },
  }),
  scalar(
    'dateDiff',
    ['string', 'date_or_datetime', 'date_or_datetime', 'string?'],
    'integer',
    'Number of unit boundaries between two times.',
    {
      sql: dateDifferenceEmitters.dateDiff,
      cases: {
        "dateDiff('day', toDate('2024-01-01'), toDate('2024-02-01'))": 31,
        "dateDiff('month', toDate('2024-01-31'), toDate('2024-02-01'))": 1,
        "dateDiff('day', NULL, toDate('2024-01-01'))": null,
      },
    },
  ),
  scalar(
    'date_diff',
    ['string', 'date_or_datetime', 'date_or_datetime', 'string?'],
    'integer',
    'Number of unit boundaries between two times.',
    {
      sql: dateDifferenceEmitters.date_diff,
      cases: {
        "date_diff('day', toDate('2024-01-01'), toDate('2024-02-01'))": 31,
        "date_diff('day', toDate('2024-01-01'), NULL)": null,
        "date_diff('minute', toDateTime('2024-01-01 00:00:00'), toDateTime('2024-01-01 01:00:30'))": 60,
      },
    },
  ),
  scalar(
    'age',
    ['string', 'date_or_datetime', 'date_or_datetime', 'string?'],
    'integer',
    'Number of whole units between two times.',
    {
      sql: dateDifferenceEmitters.age,
      cases: {
        "age('month', toDate('2024-01-31'), toDate('2024-02-29'))": 0,
        "age('year', toDate('2020-02-29'), toDate('2024-02-28'))": 3,
        "age('day', NULL, toDate('2024-01-01'))": null,
      },
    },
  ),
  scalar('dateAdd', ['any', 'any', 'any?'], 'date_or_datetime', 'A time plus an interval.', {
    sql: dateDifferenceEmitters.dateAdd,
    cases: {
      "dateAdd('day', 1, toDate('2024-02-28'))": '2024-02-29',
      "dateAdd('hour', 5, toDateTime('2024-01-01 22:00:00'))": '2024-01-02T08:00:00Z',
      "dateAdd(toDate('2024-01-01'), INTERVAL 1 WEEK)": '2024-01-08',
    },
  }),
  scalar('dateSub', ['any', 'any', 'any?'], 'date_or_datetime', 'A time minus an interval.', {
    sql: dateDifferenceEmitters.dateSub,
    cases: {
      "dateSub('day', 1, toDate('2024-03-01'))": '2024-02-29',
      "dateSub('hour', 5, toDateTime('2024-01-01 02:00:00'))": '2024-01-01T02:00:00Z',
      "dateSub(toDate('2024-01-01'), INTERVAL 1 WEEK)": '2023-12-25',
    },
  }),
  standardScalar('make_interval', ['integer...'], 'interval', 'An interval from its parts.', {
    sql: dateEmitters.make_interval,
    cases: {
      "toDate('2024-01-31') + make_interval(0, 0, 0, 1)": '2024-02-01',
      "toDateTime('2024-01-01 00:00:00') + make_interval(0, 0, 0, 0, 2)": '2024-01-01T07:00:00Z',
      "toDateTime('2024-01-01 00:00:00') + make_interval(1)": '2025-01-01T05:00:00Z',
    },
  }),
];
