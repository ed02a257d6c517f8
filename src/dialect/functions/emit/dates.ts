import { coerce } from '../../compile/coerce.ts';
import {
  argument,
  type CallSite,
  type Emitted,
  type Emitter,
  argumentNode,
  optionalArgumentSql,
  argumentSql,
} from '../../compile/functions/call_site.ts';
import { instantOf, startOfDay } from '../../compile/local_times.ts';
import { toStringSql } from '../../compile/to_string.ts';
import type { Value } from '../../resolve/value.ts';
import { intervalOfUnit, type IntervalUnit, isNumber, nameOfType, scalar, type Type } from '../../types.ts';
import { commaList, sql, type Sql } from '../../sql.ts';
import { parseTimeText } from './date_formats.ts';
import { computeSqlOnce } from '../../compile/compute_once.ts';
import { datetimeTypeAt, zoneAt } from './zones.ts';

/** Null for seconds out of range, many of which PostgreSQL rejects. */
const secondsOrNull = (seconds: Sql): Sql =>
  sql`(case when ${seconds} between -62135596800 and 253402300799 then to_timestamp(${seconds}) end)`;

/** Converts a value to a datetime in the zone of an argument, if present. */
function timeOf(site: CallSite, zoneArgument: number | null): Emitted {
  const value = argument(site, 0);
  const { kind, nullable } = value.type;
  const zone = zoneAt(site, zoneArgument);
  const type = (isNullable: boolean): Type => datetimeTypeAt(site, zoneArgument, isNullable);
  if (kind === 'datetime') return { sql: value.sql, type: type(nullable) };
  if (kind === 'date') return { sql: startOfDay(value.sql, zone), type: type(nullable) };
  if (kind === 'string' || kind === 'json')
    return { sql: parseTimeText(site, toStringSql(value, site.statement), type(true)), type: type(true) };
  if (kind === 'null') return { sql: coerce(value, scalar('datetime'), site.statement), type: type(true) };
  if (!isNumber(value.type))
    throw site.statement.error(
      `Function '${site.name}' expects a time, found ${nameOfType(value.type)}.`,
      argumentNode(site, 0),
    );
  return { sql: secondsOrNull(sql`(${value.sql})::float8`), type: type(true) };
}

/** Small numbers are days, larger ones seconds since 1970. */
const toDate: Emitter = (site) => {
  const zone = zoneAt(site, 1);
  const value = argument(site, 0);
  if (value.type.kind === 'date') return { sql: value.sql, type: value.type };
  const time = timeOf(site, 1);
  if (!('type' in time)) return time;
  const day = sql`((${time.sql}) at time zone ${zone})::date`;
  const type = scalar('date', time.type.nullable);
  if (!isNumber(value.type)) return { sql: day, type };
  const number = sql`(${value.sql})::float8`;
  return {
    sql: sql`(case when ${number} between 0 and 65535 then '1970-01-01'::date + (${number})::int4 else ${day} end)`,
    type,
  };
};

const localDay = (site: CallSite): Sql =>
  sql`(${site.statement.now} at time zone ${site.statement.timezone})::date`;
const today: Emitter = (site) => ({ sql: localDay(site), type: scalar('date') });

/** A valid date, or null. */
const dayOf = (year: Sql, month: Sql, day: Sql): Sql =>
  sql`(case when ${year} between 1 and 9999 and ${month} between 1 and 12 and ${day} between 1 and 31 then
    case when ${day} <= extract(day from make_date((${year})::int4, (${month})::int4, 1) + interval '1 month - 1 day')
    then make_date((${year})::int4, (${month})::int4, (${day})::int4) end end)`;

const makeTimestamp: Emitter = (site) => {
  const [hour, minute, second] = [3, 4, 5].map((index) => argumentSql(site, index));
  if (hour === undefined || minute === undefined || second === undefined) throw new Error('Six arguments.');
  const day = dayOf(argumentSql(site, 0), argumentSql(site, 1), argumentSql(site, 2));
  const local = sql`(${day} + make_interval(hours => (${hour})::int4, mins => (${minute})::int4, secs => (${second})::float8))`;
  return {
    sql: sql`(case when ${hour} between 0 and 23 and ${minute} between 0 and 59 and ${second} >= 0 and ${second} < 60 then
      ${instantOf(local, site.statement.timezone)} end)`,
    type: scalar('datetime', true),
  };
};

const makeInterval: Emitter = (site) => {
  if (site.values.length > 7)
    throw site.statement.error(
      `Function '${site.name}' takes years, months, weeks, days, hours, minutes and seconds.`,
      site.node,
    );
  const numbers = site.values.map(({ sql: value }, index) =>
    index === 6
      ? sql`(case when abs((${value})::float8) <= 1e10 then (${value})::float8 end)`
      : sql`(case when ${value} between -${index === 0 ? sql`4000` : sql`40000`} and ${index === 0 ? sql`4000` : sql`40000`} then (${value})::int4 end)`,
  );
  return {
    sql: sql`make_interval(${commaList(numbers)})`,
    type: intervalOfUnit(
      unitOfParts(site.values),
      site.values.some(({ type }) => type.nullable),
    ),
  };
};

/** Years, months, weeks and days keep the time of day. Undefined if the interval may have both kinds of parts. */
function unitOfParts(parts: readonly Value[]): IntervalUnit | undefined {
  const [days, times] = [parts.slice(0, 4), parts.slice(4)];
  const areZero = (values: readonly Value[]): boolean => values.every(({ constant }) => constant === 0n);
  if (areZero(times)) return 'calendar';
  return areZero(days) ? 'clock' : undefined;
}

/**
 * A number of seconds or a common time string. Formats are not supported, because a mismatch would fail the query.
 */
const toTimestamp: Emitter = (site) => {
  const format = optionalArgumentSql(site, 1);
  const value = argument(site, 0);
  if (format !== undefined)
    throw site.statement.error(
      `Function '${site.name}' does not support a format: a string that does not match it would make the query fail.`,
      argumentNode(site, 1),
      "Use parseDateTime(string, '%Y-%m-%d %H:%i:%s').",
    );
  return timeOf({ ...site, values: [value] }, null);
};

const toChar: Emitter = (site) => {
  const value = argument(site, 0);
  const type = scalar('string', value.type.nullable);
  if (value.type.kind === 'datetime')
    return {
      sql: sql`to_char(${value.sql} at time zone ${zoneAt(site, null)}, ${argumentSql(site, 1)})`,
      type,
    };
  if (value.type.kind === 'date' || value.type.kind === 'interval' || isNumber(value.type))
    return { sql: sql`to_char(${value.sql}, ${argumentSql(site, 1)})`, type };
  throw site.statement.error(
    `Function 'to_char' expects a time or a number, found ${nameOfType(value.type)}.`,
    argumentNode(site, 0),
  );
};

export const dateEmitters = {
  now: (site) => ({ sql: site.statement.now, type: scalar('datetime') }),
  today,
  current_date: today,
  yesterday: (site) => ({ sql: sql`(${localDay(site)} - 1)`, type: scalar('date') }),
  toDate,
  toDateTime: (site) => timeOf(site, 1),
  toDateTime64: (site) => timeOf(site, 2),
  toTimeZone: (site) => {
    const { sql: moment, type } = argument(site, 0);
    return { sql: moment, type: datetimeTypeAt(site, 1, type.nullable) };
  },
  fromUnixTimestamp: (site) => ({
    sql: secondsOrNull(sql`(${argumentSql(site, 0)})::float8`),
    type: scalar('datetime', true),
  }),
  make_date: (site) => ({
    sql: computeSqlOnce(
      [argumentSql(site, 0), argumentSql(site, 1), argumentSql(site, 2)],
      (y = sql``, m = sql``, d = sql``) => dayOf(y, m, d),
    ),
    type: scalar('date', true),
  }),
  make_timestamp: makeTimestamp,
  make_interval: makeInterval,
  date_bin: (site) => ({
    sql: sql`(case when extract(epoch from ${argumentSql(site, 0)}) > 0 and extract(year from justify_interval(${argumentSql(site, 0)})) = 0 and ${argumentSql(site, 0)} < interval '28 days'
      then date_bin(${argumentSql(site, 0)}, ${argumentSql(site, 1)}, ${argumentSql(site, 2)}) end)`,
    type: datetimeTypeAt(site, null, true, 1),
  }),
  to_char: toChar,
  to_timestamp: toTimestamp,
} satisfies Readonly<Record<string, Emitter>>;
