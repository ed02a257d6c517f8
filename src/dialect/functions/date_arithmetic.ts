import { argumentAs } from '../compile/calls/signature.ts';
import { addInterval } from '../compile/expressions/arithmetic.ts';
import type { TimeUnit } from '../lexer.ts';
import { rawSql, sql, type Sql } from '../sql.ts';
import type { TimeZone } from '../time_zone.ts';
import { scalarType } from '../types.ts';
import {
  argument,
  type CallSite,
  type Emitter,
  type FunctionDefinition,
  scalar,
  standardScalar,
} from './function_definition.ts';
import { instantAt, intervalOfUnits, localTime, unitAt, zoneAt } from './time_arguments.ts';
import { dateEmitters } from './times.ts';

/** The zone of one of the two times: the last argument for both, else their own. */
const zoneOfTime = (site: CallSite, index: number): TimeZone => zoneAt(site, 3, index);

const localAt = (site: CallSite, index: number): Sql => localTime(site, index, zoneOfTime(site, index));

const momentAt = (site: CallSite, index: number): Sql => instantAt(site, index, zoneOfTime(site, index));

const isoDay = (local: Sql): Sql => sql`date_trunc('week', ${local})::date`;
const monthNumber = (local: Sql): Sql =>
  sql`(extract(year from ${local}) * 12 + extract(month from ${local}))`;

/** The number of unit boundaries between two times. */
function boundariesBetween(site: CallSite, unit: TimeUnit): Sql {
  const [from, to] = [localAt(site, 1), localAt(site, 2)];
  switch (unit) {
    case 'year':
      return sql`(extract(year from ${to}) - extract(year from ${from}))`;
    case 'quarter':
      return sql`((extract(year from ${to}) * 4 + extract(quarter from ${to})) - (extract(year from ${from}) * 4 + extract(quarter from ${from})))`;
    case 'month':
      return sql`(${monthNumber(to)} - ${monthNumber(from)})`;
    case 'week':
      return sql`((${isoDay(to)} - ${isoDay(from)}) / 7)`;
    case 'day':
      return sql`((${to})::date - (${from})::date)`;
    default: {
      const start = (index: number): Sql =>
        sql`extract(epoch from date_trunc('${rawSql(unit)}', ${momentAt(site, index)}, ${zoneOfTime(site, index)}))`;
      // A clock change of half an hour leaves half an hour between two starts.
      return sql`trunc((${start(2)} - ${start(1)}) / ${rawSql(String(secondsOf[unit] ?? 1))})`;
    }
  }
}

const secondsOf: Readonly<Partial<Record<TimeUnit, number>>> = {
  microsecond: 0.000001,
  millisecond: 0.001,
  second: 1,
  minute: 60,
  hour: 3_600,
  day: 86_400,
  week: 604_800,
};

/** The number of whole units between two times. */
function wholeUnitsBetween(site: CallSite, unit: TimeUnit): Sql {
  const [from, to] = [localAt(site, 1), localAt(site, 2)];
  const months = sql`(extract(year from age(${to}, ${from})) * 12 + extract(month from age(${to}, ${from})))`;
  switch (unit) {
    case 'year':
      return sql`trunc(${months} / 12)`;
    case 'quarter':
      return sql`trunc(${months} / 3)`;
    case 'month':
      return months;
    default: {
      const length = sql`${rawSql(String(secondsOf[unit] ?? 1))}`;
      const inDays = unit === 'day' || unit === 'week';
      const elapsed = inDays
        ? sql`extract(epoch from (${to} - ${from}))`
        : sql`extract(epoch from (${momentAt(site, 2)} - ${momentAt(site, 1)}))`;
      return sql`trunc(${elapsed} / ${length})`;
    }
  }
}

const difference =
  (count: (site: CallSite, unit: TimeUnit) => Sql): Emitter =>
  (site) => ({
    sql: sql`(${count(site, unitAt(site, 0))})::int8`,
    type: scalarType('integer', argument(site, 1).type.nullable || argument(site, 2).type.nullable),
  });

/** Adds or subtracts units. */
const shift =
  (unit: TimeUnit, sign: '+' | '-'): Emitter =>
  (site) =>
    addInterval(argument(site, 0), intervalOfUnits(argument(site, 1), unit), sign, site.statement);

/** `dateAdd('day', 3, time)` and `dateAdd(time, INTERVAL 3 DAY)`. */
const dateAddition =
  (sign: '+' | '-'): Emitter =>
  (site) => {
    const [time, interval] =
      site.values.length === 2
        ? [argumentAs(site, 0, 'date_or_datetime'), argumentAs(site, 1, 'interval')]
        : [
            argumentAs(site, 2, 'date_or_datetime'),
            intervalOfUnits(argumentAs(site, 1, 'number'), unitAt(site, 0)),
          ];
    return addInterval(time, interval, sign, site.statement);
  };

/** An interval of a number of units. */
const unitInterval =
  (unit: TimeUnit): Emitter =>
  (site) =>
    intervalOfUnits(argument(site, 0), unit);

const dateDifferenceEmitters = {
  dateDiff: difference(boundariesBetween),
  date_diff: difference(boundariesBetween),
  age: difference(wholeUnitsBetween),
  dateAdd: dateAddition('+'),
  dateSub: dateAddition('-'),
} satisfies Readonly<Record<string, Emitter>>;

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
