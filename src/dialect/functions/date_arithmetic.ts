import { argumentAs } from '../compile/calls/signature.ts';
import { addInterval } from '../compile/expressions/arithmetic.ts';
import type { TimeUnit } from '../query_text.ts';
import { derive, type Value } from '../resolve/value.ts';
import { commaList, rawSql, sql, type Sql } from '../sql.ts';
import { type TimeZone, intervalOfUnit, type IntervalUnit, scalarType } from '../types.ts';
import {
  argument,
  type CallSite,
  type Emitter,
  type FunctionDefinition,
  isNullable,
  scalar,
  standardScalar,
  instantAt,
  intervalOfUnits,
  localTime,
  unitAt,
  zoneAt,
} from './function_definition.ts';

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

const makeInterval: Emitter = (site) => {
  if (site.values.length > 7)
    throw site.statement.error(
      `Function '${site.name}' takes years, months, days, hours, minutes and seconds.`,
      site.node,
    );
  // All seven are those of PostgreSQL, with weeks before days.
  const none = derive('literal Int64 0', [], scalarType('integer'), sql`0::int8`, { constant: 0n });
  const parts =
    site.values.length > 2 && site.values.length < 7 ? site.values.toSpliced(2, 0, none) : site.values;
  const numbers = parts.map(({ sql: value }, index) =>
    index === 6
      ? sql`(case when abs((${value})::float8) <= 1e10 then (${value})::float8 end)`
      : sql`(case when ${value} between -${index === 0 ? sql`4000` : sql`40000`} and ${index === 0 ? sql`4000` : sql`40000`} then (${value})::int4 end)`,
  );
  return {
    sql: sql`make_interval(${commaList(numbers)})`,
    type: intervalOfUnit(unitOfParts(parts), isNullable(site)),
  };
};

/** Years, months, weeks and days keep the time of day. Undefined if the interval may have both kinds of parts. */
function unitOfParts(parts: readonly Value[]): IntervalUnit | undefined {
  const [days, times] = [parts.slice(0, 4), parts.slice(4)];
  const areZero = (values: readonly Value[]): boolean => values.every(({ constant }) => constant === 0n);
  if (areZero(times)) return 'calendar';
  return areZero(days) ? 'clock' : undefined;
}

/** The units that functions are named after. */
const namedUnits = ['second', 'minute', 'hour', 'day', 'week', 'month', 'quarter', 'year'] as const;

/** `addDays`, `subtractDays`, `toIntervalDay` and so on. */
const unitFunctions = namedUnits.flatMap((unit): readonly FunctionDefinition[] => {
  const name = `${unit.charAt(0).toUpperCase()}${unit.slice(1)}`;
  const types = '(date_or_datetime, number): date_or_datetime';
  return [
    scalar(`add${name}s${types}`, `A time plus ${unit}s.`, shift(unit, '+')),
    scalar(`subtract${name}s${types}`, `A time minus ${unit}s.`, shift(unit, '-')),
    scalar(`toInterval${name}(number): interval`, `An interval of ${unit}s.`, (site) =>
      intervalOfUnits(argument(site, 0), unit),
    ),
  ];
});

/** Arithmetic of dates, times and intervals. */
export const dateArithmeticFunctions: readonly FunctionDefinition[] = [
  ...unitFunctions,
  scalar(
    'dateDiff(string, date_or_datetime, date_or_datetime, string?): integer',
    'Number of unit boundaries between two times.',
    difference(boundariesBetween),
  ),
  scalar(
    'date_diff(string, date_or_datetime, date_or_datetime, string?): integer',
    'Number of unit boundaries between two times.',
    difference(boundariesBetween),
  ),
  scalar(
    'age(string, date_or_datetime, date_or_datetime, string?): integer',
    'Number of whole units between two times.',
    difference(wholeUnitsBetween),
  ),
  scalar('dateAdd(any, any, any?): date_or_datetime', 'A time plus an interval.', dateAddition('+')),
  scalar('dateSub(any, any, any?): date_or_datetime', 'A time minus an interval.', dateAddition('-')),
  standardScalar('make_interval(integer...): interval', 'An interval from its parts.', makeInterval),
];
