import { addInterval } from '../../compile/intervals.ts';
import { argumentAs } from '../../compile/functions/signature.ts';
import { argument, type CallSite, type Emitter } from '../../compile/functions/call_site.ts';
import type { TimeUnit } from '../../keywords.ts';
import { rawSql, sql, type Sql } from '../../sql.ts';
import type { TimeZone } from '../../time_zone.ts';
import { scalar } from '../../types.ts';
import { unitAt, intervalOfUnits } from './units.ts';
import { instantAt, localTime, zoneAt } from './zones.ts';

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
    type: scalar('integer', argument(site, 1).type.nullable || argument(site, 2).type.nullable),
  });

/** Adds or subtracts units. */
export const shift =
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
export const unitInterval =
  (unit: TimeUnit): Emitter =>
  (site) =>
    intervalOfUnits(argument(site, 0), unit);

export const dateDifferenceEmitters = {
  dateDiff: difference(boundariesBetween),
  date_diff: difference(boundariesBetween),
  age: difference(wholeUnitsBetween),
  dateAdd: dateAddition('+'),
  dateSub: dateAddition('-'),
} satisfies Readonly<Record<string, Emitter>>;
