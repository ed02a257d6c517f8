import { computeSqlOnce } from '../compile/compiler.ts';
import { addInterval } from '../compile/expressions/arithmetic.ts';
import { instantOf, startOfDay, startOfDayOf } from '../compile/times/local_times.ts';
import type { TimeUnit } from '../query_text.ts';
import { derive, type Value } from '../resolve/value.ts';
import { rawSql, sql, type Sql } from '../sql.ts';
import { scalarType } from '../types.ts';
import {
  argument,
  argumentError,
  argumentSql,
  type CallSite,
  type Emitted,
  type Emitter,
  type FunctionDefinition,
  scalar,
  standardScalar,
  constantInterval,
  datetimeTypeAt,
  instantAt,
  intervalOfUnits,
  localTime,
  unitAt,
  zoneAt,
} from './function_definition.ts';

function dateOf(site: CallSite, local: Sql, time = 0): Emitted {
  return { sql: sql`(${local})::date`, type: scalarType('date', argument(site, time).type.nullable) };
}

/** A datetime in the zone of an argument if present. */
const timeOf = (site: CallSite, instant: Sql, zone: number | null, time = 0): Emitted => ({
  sql: instant,
  type: datetimeTypeAt(site, zone, argument(site, time).type.nullable, time),
});

// Origins of weeks, before any likely time.
const firstMonday = '0001-01-01';
const firstSunday = '0001-01-07';

/** The start of a fixed-length bin in UTC. */
const binned = (length: string, moment: Sql, first = firstMonday): Sql =>
  sql`date_bin('${rawSql(length)}'::interval, ${moment}, '${rawSql(first)}T00:00:00Z'::timestamptz)`;

const truncated = (unit: string, local: Sql): Sql => sql`date_trunc('${rawSql(unit)}', ${local})`;

/** The first day of a unit. */
const startDay =
  (unit: string): Emitter =>
  (site) =>
    dateOf(site, truncated(unit, localTime(site, 0, zoneAt(site, 1))));

/** The start of a unit. Below a day, both passes of an hour that a clock change repeats have their own starts. */
const startTime =
  (unit: TimeUnit): Emitter =>
  (site) =>
    truncatedTime(site, unit, 1, 0);

function truncatedTime(site: CallSite, unit: TimeUnit, zoneArgument: number, time: number): Emitted {
  const zone = zoneAt(site, zoneArgument, time);
  const moment = instantAt(site, time, zone);
  const of = (start: Sql): Emitted => timeOf(site, start, zoneArgument, time);
  if (argument(site, time).type.kind === 'date') return of(moment);
  // Dividing takes a third of the time of PostgreSQL's calendar functions.
  if (zone.isUtc) return of(binned(`1 ${unit}`, moment));
  return of(
    unit === 'day' ? startOfDayOf(moment, zone) : sql`date_trunc('${rawSql(unit)}', ${moment}, ${zone})`,
  );
}

/** Fractions of an hour. */
const everyMinutes =
  (minutes: number): Emitter =>
  (site) => {
    const zone = zoneAt(site, 1);
    const step = sql`interval '${rawSql(String(minutes))} minutes'`;
    const moment = instantAt(site, 0, zone);
    return timeOf(site, sql`date_bin(${step}, ${moment}, date_trunc('hour', ${moment}, ${zone}))`, 1);
  };

/** The first day of a week that starts on Monday or Sunday. */
function weekOf(site: CallSite, monday: boolean, zoneArgument: number, time = 0): Emitted {
  const { sql: fragment, type } = argument(site, time);
  const zone = zoneAt(site, zoneArgument, time);
  if (type.kind === 'datetime' && zone.isUtc) {
    const start = binned('7 days', fragment, monday ? firstMonday : firstSunday);
    return dateOf(site, sql`(${start} at time zone 'UTC')`, time);
  }
  const day = localTime(site, time, zone);
  const start = monday
    ? truncated('week', day)
    : sql`(date_trunc('week', ${day} + interval '1 day') - interval '1 day')`;
  return dateOf(site, start, time);
}

const startOfWeek: Emitter = (site) => {
  const mode = site.values[1];
  if (mode !== undefined && typeof mode.constant !== 'bigint')
    throw argumentError(site, 1, `The mode of '${site.name}' must be an integer literal.`);
  const monday =
    typeof mode?.constant === 'bigint'
      ? mode.constant % 2n === 1n
      : site.statement.project.weekStartDay === 'monday';
  return weekOf(site, monday, 2);
};

/** Bins are counted from an origin. Days and longer units keep its local time. */
function startFromOrigin(site: CallSite, unit: TimeUnit, n: Sql): Emitted {
  const zone = zoneAt(site, 3);
  const step = sql`(${n} * '1 ${rawSql(unit)}'::interval)`;
  if (unit !== 'day' && !days.has(unit))
    return timeOf(site, sql`date_bin(${step}, ${instantAt(site, 0, zone)}, ${instantAt(site, 2, zone)})`, 3);
  const [local, first] = [localTime(site, 0, zone), localTime(site, 2, zone)];
  const start =
    unit === 'day' || unit === 'week'
      ? sql`date_bin(${n} * '${rawSql(unit === 'week' ? '7 days' : '1 day')}'::interval, ${local}, ${first})`
      : sql`(${first} + (floor((extract(year from age(${local}, ${first})) * 12 + extract(month from age(${local}, ${first})))
        / (${n} * ${rawSql(monthsOf[unit] ?? '1')})) * ${n} * ${rawSql(monthsOf[unit] ?? '1')})::int4 * '1 month'::interval)`;
  return timeOf(site, instantOf(start, zone), 3);
}

const monthsOf: Readonly<Partial<Record<TimeUnit, string>>> = { month: '1', quarter: '3', year: '12' };

/** Bins of years start at year 0, of months at 1900, of weeks on a Monday, of days at 1970, of hours at midnight. */
const startOfInterval: Emitter = (site) => {
  const { amount, unit } = constantInterval(site, 1);
  if (typeof amount.constant !== 'bigint' || amount.constant < 1n || amount.constant > 1_000_000n)
    throw argumentError(site, 1, `The amount of an interval must be an integer from 1 to 1000000.`);
  const origin = site.values[2];
  if (origin !== undefined && (origin.type.kind === 'date' || origin.type.kind === 'datetime'))
    return startFromOrigin(site, unit, amount.sql);
  if (amount.constant === 1n && (unit === 'hour' || unit === 'day')) return truncatedTime(site, unit, 2, 0);
  const zone = zoneAt(site, 2);
  const local = localTime(site, 0, zone);
  const n = amount.sql;
  switch (unit) {
    case 'year':
      return dateOf(
        site,
        sql`make_date(greatest((extract(year from ${local})::int8 / ${n} * ${n})::int4, 1), 1, 1)`,
      );
    case 'quarter':
    case 'month': {
      const months = unit === 'month' ? n : sql`(${n} * 3)`;
      const index = sql`((extract(year from ${local})::int8 - 1900) * 12 + extract(month from ${local})::int8 - 1)`;
      return dateOf(
        site,
        sql`('1900-01-01'::timestamp + make_interval(months => (${index} / ${months} * ${months})::int4))`,
      );
    }
    case 'week':
    case 'day': {
      const days = unit === 'week' ? sql`(${n} * 7)` : n;
      const first = unit === 'week' ? sql`'1970-01-05'::timestamp` : sql`'1970-01-01'::timestamp`;
      const start = sql`date_bin(make_interval(days => (${days})::int4), ${local}, ${first})`;
      return unit === 'week' ? dateOf(site, start) : timeOf(site, startOfDay(start, zone), 2);
    }
    case 'hour': {
      const step = sql`(${n} * '1 hour'::interval)`;
      const bin = (at = sql``): Sql =>
        instantOf(sql`date_bin(${step}, ${at}, date_trunc('day', ${at}))`, zone);
      return timeOf(site, computeSqlOnce([local], bin), 2);
    }
    default: {
      const step = sql`(${n} * '1 ${rawSql(unit)}'::interval)`;
      const moment = instantAt(site, 0, zone);
      return timeOf(site, sql`date_bin(${step}, ${moment}, '1970-01-01T00:00:00Z'::timestamptz)`, 2);
    }
  }
};

/** The start of the next bin. */
const endOfInterval: Emitter = (site) => {
  const { amount, unit } = constantInterval(site, 1);
  const start = startOfInterval(site);
  if (!('type' in start)) return start;
  const from: Value = derive('toStartOfInterval', site.values, start.type, start.sql);
  return addInterval(from, intervalOfUnits(amount, unit), '+', site.statement);
};

const days = new Set<TimeUnit>(['week', 'month', 'quarter', 'year']);

/** Returns dates for units of days or longer, datetimes for shorter ones. */
const dateTrunc: Emitter = (site) => {
  const unit = unitAt(site, 0);
  if (!days.has(unit)) return truncatedTime(site, unit, 2, 1);
  if (unit === 'week') return weekOf(site, true, 2, 1);
  return dateOf(site, truncated(unit, localTime(site, 1, zoneAt(site, 2, 1))), 1);
};

/** Starts and ends of intervals. */
export const dateStartFunctions: readonly FunctionDefinition[] = [
  scalar(
    'toStartOfYear(date_or_datetime, string?): date',
    'The start of the year of a time.',
    startDay('year'),
  ),
  scalar(
    'toStartOfQuarter(date_or_datetime, string?): date',
    'The start of the quarter of a time.',
    startDay('quarter'),
  ),
  scalar(
    'toStartOfMonth(date_or_datetime, string?): date',
    'The start of the month of a time.',
    startDay('month'),
  ),
  scalar(
    'toStartOfWeek(date_or_datetime, integer?, string?): date',
    'The first day of the week of a time.',
    startOfWeek,
    { ranges: [{ index: 1, min: 0, max: 255 }] },
  ),
  scalar(
    'toStartOfDay(date_or_datetime, string?): datetime',
    'The start of the day of a time.',
    startTime('day'),
  ),
  scalar(
    'toStartOfHour(date_or_datetime, string?): datetime',
    'The start of the hour of a time.',
    startTime('hour'),
  ),
  scalar(
    'toStartOfMinute(date_or_datetime, string?): datetime',
    'The start of the minute of a time.',
    startTime('minute'),
  ),
  scalar(
    'toStartOfSecond(date_or_datetime, string?): datetime',
    'The start of the second of a time.',
    startTime('second'),
  ),
  scalar(
    'toStartOfFiveMinutes(date_or_datetime, string?): datetime',
    'The start of the five-minute interval of a time.',
    everyMinutes(5),
  ),
  scalar(
    'toStartOfTenMinutes(date_or_datetime, string?): datetime',
    'The start of the ten-minute interval of a time.',
    everyMinutes(10),
  ),
  scalar(
    'toStartOfFifteenMinutes(date_or_datetime, string?): datetime',
    'The start of the fifteen-minute interval of a time.',
    everyMinutes(15),
  ),
  scalar(
    'toStartOfInterval(date_or_datetime, interval, any?, string?): datetime',
    'The start of the interval of a time. Intervals are counted from the third argument, if it is a time.',
    startOfInterval,
  ),
  scalar(
    'tumbleStart(date_or_datetime, interval, string?): datetime',
    'The start of the interval of a time.',
    startOfInterval,
  ),
  scalar(
    'tumbleEnd(date_or_datetime, interval, string?): datetime',
    'The end of the interval of a time.',
    endOfInterval,
  ),
  scalar(
    'toStartOfISOYear(date_or_datetime, string?): date',
    'The first day of the ISO 8601 year of a time.',
    (site) => {
      const local = localTime(site, 0, zoneAt(site, 1));
      const fourth = sql`make_date((extract(isoyear from ${local}))::int4, 1, 4)`;
      return dateOf(site, truncated('week', sql`${fourth}::timestamp`));
    },
  ),
  scalar(
    'toLastDayOfWeek(date_or_datetime, integer?, string?): date',
    'The last day of the week of a time.',
    (site) => {
      const start = startOfWeek(site);
      const first = 'type' in start ? start.sql : start;
      return dateOf(site, sql`(${first} + 6)`);
    },
    { ranges: [{ index: 1, min: 0, max: 255 }] },
  ),
  scalar('toMonday(date_or_datetime, string?): date', 'The Monday of the week of a time.', (site) =>
    weekOf(site, true, 1),
  ),
  scalar(
    'toLastDayOfMonth(date_or_datetime, string?): date',
    'The last day of the month of a time.',
    (site) =>
      dateOf(
        site,
        sql`(${truncated('month', localTime(site, 0, zoneAt(site, 1)))} + interval '1 month - 1 day')`,
      ),
  ),
  scalar(
    'dateTrunc(string, date_or_datetime, string?): date_or_datetime',
    'The time truncated to a unit.',
    dateTrunc,
  ),
  standardScalar(
    'date_trunc(string, date_or_datetime, string?): date_or_datetime',
    'The time truncated to a unit.',
    dateTrunc,
  ),
  scalar('timeSlot(datetime): datetime', 'The start of the half hour of a time.', everyMinutes(30)),
  standardScalar(
    'date_bin(interval, datetime, datetime): datetime',
    'The start of the bin of a time.',
    (site) => ({
      sql: sql`(case when extract(epoch from ${argumentSql(site, 0)}) > 0 and extract(year from justify_interval(${argumentSql(site, 0)})) = 0 and ${argumentSql(site, 0)} < interval '28 days'
      then date_bin(${argumentSql(site, 0)}, ${argumentSql(site, 1)}, ${argumentSql(site, 2)}) end)`,
      type: datetimeTypeAt(site, null, true, 1),
    }),
  ),
];
