import { computeSqlOnce } from '../compile/compiler.ts';
import { castStringTo } from '../compile/expressions/casts.ts';
import { coerce, toStringSql } from '../compile/expressions/coerce.ts';
import { instantOf, parseTime, startOfDay } from '../compile/times/local_times.ts';
import { bind, joinSql, rawSql, sql, type Sql } from '../sql.ts';
import { isNumber, nameOfType, scalarType, type TimeZone, type Type } from '../types.ts';
import {
  argument,
  argumentError,
  argumentSql,
  type CallSite,
  type Emitted,
  type Emitter,
  type FunctionDefinition,
  optionalArgumentSql,
  scalar,
  standardScalar,
  datetimeTypeAt,
  instantAt,
  localTime,
  zoneAt,
} from './function_definition.ts';

/** Format specifiers with PostgreSQL's to_char patterns. */
const formatPatterns: Readonly<Record<string, string>> = {
  a: 'Dy',
  b: 'Mon',
  c: 'MM',
  D: 'MM/DD/YY',
  d: 'DD',
  F: 'YYYY-MM-DD',
  f: 'US',
  G: 'IYYY',
  g: 'IY',
  H: 'HH24',
  h: 'HH12',
  I: 'HH12',
  i: 'MI',
  j: 'DDD',
  M: 'FMMonth',
  m: 'MM',
  p: 'AM',
  Q: 'FMQ',
  R: 'HH24:MI',
  r: 'HH12:MI AM',
  S: 'SS',
  s: 'SS',
  T: 'HH24:MI:SS',
  u: 'FMID',
  V: 'IW',
  W: 'FMDay',
  Y: 'YYYY',
  y: 'YY',
};

function formatAt(site: CallSite, index: number): string {
  const format = argument(site, index).constant;
  if (typeof format !== 'string')
    throw argumentError(site, index, `The format of '${site.name}' must be a string literal.`);
  return format;
}

const unknownSpecifier = (site: CallSite, index: number, letter: string): Error =>
  argumentError(
    site,
    index,
    `Function '${site.name}' does not support %${letter}.`,
    `Supported are ${Object.keys(formatPatterns)
      .map((one) => `%${one}`)
      .join(' ')} %e %k %l %w %z %n %t %%.`,
  );

const formatDateTime: Emitter = (site) => {
  const zone = zoneAt(site, 2);
  const format = formatAt(site, 1);
  const local = localTime(site, 0, zone);
  const type = scalarType('string', argument(site, 0).type.nullable);
  const offset = sql`(${local} - (${instantAt(site, 0, zone)} at time zone 'UTC'))`;
  return {
    sql: computeSqlOnce([local, ...(format.includes('%z') ? [offset] : [])], (time = sql``, past = sql``) => {
      const fragments = [...format.matchAll(/%([\s\S]?)|[^%]+/g)].map(([matched, letter]) =>
        letter === undefined ? bind(matched, 'text') : formatted(site, letter, time, past),
      );
      return fragments.length === 0 ? sql`''::text` : sql`(${joinSql(fragments, ' || ')})`;
    }),
    type,
  };
};

/** @param offset of the zone from UTC, an interval */
function formatted(site: CallSite, letter: string, time: Sql, offset: Sql): Sql {
  const by = (pattern: string): Sql => sql`to_char(${time}, '${rawSql(pattern)}')`;
  switch (letter) {
    case 'e':
      return by('FMDD');
    case 'k':
      return by('HH24');
    case 'l':
      return by('HH12');
    case 'C':
      return sql`left(${by('YYYY')}, 2)`;
    case 'w':
      return sql`(extract(dow from ${time})::text)`;
    case 'z':
      return sql`(case when ${offset} < interval '0' then '-' else '+' end || to_char(case when ${offset} < interval '0' then - ${offset} else ${offset} end, 'HH24MI'))`;
    case 'n':
      return bind('\n', 'text');
    case 't':
      return bind('\t', 'text');
    case '%':
      return bind('%', 'text');
  }
  const pattern = formatPatterns[letter];
  if (pattern === undefined) throw unknownSpecifier(site, 1, letter);
  return by(pattern);
}

/** Format specifiers for parsing: the parts of a time and their patterns. */
const parsePatterns: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  Y: [['year', '(\\d{4})']],
  m: [['month', '(\\d{1,2})']],
  c: [['month', '(\\d{1,2})']],
  d: [['day', '(\\d{1,2})']],
  e: [['day', ' ?(\\d{1,2})']],
  H: [['hour', '(\\d{1,2})']],
  k: [['hour', ' ?(\\d{1,2})']],
  i: [['minute', '(\\d{1,2})']],
  s: [['second', '(\\d{1,2})']],
  S: [['second', '(\\d{1,2})']],
  f: [['fraction', '(\\d{1,6})']],
  b: [['monthName', '([A-Za-z]{3})']],
  M: [['monthName', '([A-Za-z]{3})[a-z]*']],
  F: [
    ['year', '(\\d{4})-'],
    ['month', '(\\d{1,2})-'],
    ['day', '(\\d{1,2})'],
  ],
  T: [
    ['hour', '(\\d{1,2}):'],
    ['minute', '(\\d{1,2}):'],
    ['second', '(\\d{1,2})'],
  ],
  R: [
    ['hour', '(\\d{1,2}):'],
    ['minute', '(\\d{1,2})'],
  ],
};

const parseDateTime: Emitter = (site) => {
  const type = datetimeTypeAt(site, 2, true);
  const parts: string[] = [];
  const pattern = [...formatAt(site, 1).matchAll(/%([\s\S])|%$|[^%]+/g)].map(([matched, letter]) => {
    if (letter === '%' || letter === undefined) return (letter ?? matched).replaceAll(/[^\w ]/g, '\\$&');
    const reader = parsePatterns[letter];
    if (reader === undefined) throw unknownSpecifier(site, 1, letter);
    parts.push(...reader.map(([part]) => part));
    return reader.map(([, look]) => look).join('');
  });
  const match = sql`regexp_match(${argument(site, 0).sql}, ${bind(`^${pattern.join('')}$`, 'text')})`;
  return {
    sql: computeSqlOnce([match], (groups = sql``) => {
      const part = (name: string, length: number, none: string): Sql => {
        const index = parts.indexOf(name);
        return index === -1
          ? rawSql(`'${none}'`)
          : sql`lpad(${groups}[${rawSql(String(index + 1))}], ${rawSql(String(length))}, '0')`;
      };
      const named = parts.indexOf('monthName');
      const month =
        named === -1 ? part('month', 2, '01') : monthNumber(sql`${groups}[${rawSql(String(named + 1))}]`);
      const clock = sql`${part('hour', 2, '00')} || ':' || ${part('minute', 2, '00')} || ':' || ${part('second', 2, '00')}`;
      const fraction = parts.includes('fraction')
        ? sql` || '.' || ${groups}[${rawSql(String(parts.indexOf('fraction') + 1))}]`
        : sql``;
      return castTime(
        sql`(${part('year', 4, '1970')} || '-' || ${month} || '-' || ${part('day', 2, '01')} || ' ' || ${clock}${fraction})`,
        type,
        site,
      );
    }),
    type,
  };
};

const monthNumber = (name: Sql): Sql =>
  sql`lpad(nullif((position(lower(left(${name}, 3)) in 'janfebmaraprmayjunjulaugsepoctnovdec') + 2) / 3, 0)::text, 2, '0')`;

/** Casts a string such as `2026-11-21 10:00:00` in a zone. */
const castTime = (text: Sql, type: Type, site: CallSite): Sql =>
  computeSqlOnce([text], (t = sql``) => castStringTo(t, type, site.statement));

/**
 * Parses a time in a common format: ISO 8601 (space or T, with or without zone, one-digit month and day), seconds or
 * milliseconds since 1970, digits only, `21 Nov 2026 10:00:00`, and 21/11/2026.
 */
function parseTimeText(site: CallSite, text: Sql, type: Type): Sql {
  return computeSqlOnce([sql`btrim(${text})`], (t = sql``) => {
    const date = (match: Sql, year: number, day: number): Sql =>
      computeSqlOnce([match], (m = sql``) => {
        const rest = sql`coalesce(' ' || lpad(${m}[4], 2, '0') || ':' || ${m}[5] || ':' || coalesce(${m}[6], '00') || coalesce(${m}[7], '') || coalesce(nullif(${m}[8], 'GMT'), case ${m}[8] when 'GMT' then 'Z' end, ''), '')`;
        const fragment = (index: number): Sql => sql`${m}[${rawSql(String(index))}]`;
        const named = sql`case when ${fragment(2)} ~ '[A-Za-z]' then ${monthNumber(fragment(2))} else lpad(${fragment(2)}, 2, '0') end`;
        return castTime(
          sql`(${fragment(year)} || '-' || ${named} || '-' || lpad(${fragment(day)}, 2, '0') || ${rest})`,
          type,
          site,
        );
      });
    const clock = '(?:[T ]+(\\d{1,2}):(\\d{2})(?::(\\d{2})([.]\\d{1,9})?)? *(Z|GMT|[-+]\\d{2}:?\\d{2})?)?$';
    const weekday = '^(?:[A-Za-z]{3,9},? +)?';
    return sql`(case when ${t} ~ '^\\d{9,10}([.]\\d{1,9})?$' then to_timestamp((${t})::float8)
      when ${t} ~ '^\\d{13}$' then to_timestamp((${t})::float8 / 1000)
      when ${t} ~ '^\\d{14}$' then ${castTime(sql`regexp_replace(${t}, '^(....)(..)(..)(..)(..)(..)$', '\\1-\\2-\\3 \\4:\\5:\\6')`, type, site)}
      when ${t} ~ '^\\d{8}$' then ${castTime(sql`regexp_replace(${t}, '^(....)(..)(..)$', '\\1-\\2-\\3')`, type, site)}
      when ${t} ~ '^\\d{4}-' then ${date(sql`regexp_match(${t}, '^(\\d{4})-(\\d{1,2})-(\\d{1,2})${rawSql(clock)}')`, 1, 3)}
      when ${t} ~ '^\\d{4}/' then ${date(sql`regexp_match(${t}, '^(\\d{4})/(\\d{1,2})/(\\d{1,2})${rawSql(clock)}')`, 1, 3)}
      when ${t} ~ '^\\d{1,2}/' then ${date(sql`regexp_match(${t}, '^(\\d{1,2})/(\\d{1,2})/(\\d{4})${rawSql(clock)}')`, 3, 1)}
      else ${date(sql`regexp_match(${t}, '${rawSql(weekday)}(\\d{1,2})[- ]([A-Za-z]{3,9})[- ](\\d{4})${rawSql(clock)}')`, 3, 1)} end)`;
  });
}

/** Null for seconds out of range, many of which PostgreSQL rejects. */
const secondsOrNull = (seconds: Sql): Sql =>
  sql`(case when ${seconds} between -62135596800 and 253402300799 then to_timestamp((${seconds})::float8) end)`;

/**
 * A time of our days in the usual format, as UTC; null for any other text. PostgreSQL plans a range between constants, and
 * not one between texts that it has to parse.
 */
const commonTime = (text: string, zone: TimeZone): string | null =>
  /^(19[7-9]|20\d)\d-\d\d-\d\d([T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?)?$/.test(text)
    ? parseTime(text, zone.name)
    : null;

/** Converts a value to a datetime in the zone of an argument, if present. */
function timeOf(site: CallSite, zoneArgument: number | null): Emitted {
  const value = argument(site, 0);
  const { kind, nullable } = value.type;
  const zone = zoneAt(site, zoneArgument);
  const type = (isNullable: boolean): Type => datetimeTypeAt(site, zoneArgument, isNullable);
  if (kind === 'datetime') return { sql: value.sql, type: type(nullable) };
  if (kind === 'date') return { sql: startOfDay(value.sql, zone), type: type(nullable) };
  const known = typeof value.constant === 'string' ? commonTime(value.constant, zone) : null;
  if (known !== null) return { sql: bind(known, 'timestamptz'), type: type(true) };
  if (kind === 'string' || kind === 'json')
    return { sql: parseTimeText(site, toStringSql(value, site.statement), type(true)), type: type(true) };
  if (kind === 'null')
    return { sql: coerce(value, scalarType('datetime'), site.statement), type: type(true) };
  if (!isNumber(value.type))
    throw argumentError(site, 0, `Function '${site.name}' expects a time, found ${nameOfType(value.type)}.`);
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
  const type = scalarType('date', time.type.nullable);
  if (!isNumber(value.type)) return { sql: day, type };
  const number = sql`(${value.sql})::float8`;
  return {
    sql: sql`(case when ${number} between 0 and 65535 then '1970-01-01'::date + (${number})::int4 else ${day} end)`,
    type,
  };
};

const localDay = (site: CallSite): Sql =>
  sql`(${site.statement.now} at time zone ${site.statement.timezone})::date`;
const today: Emitter = (site) => ({ sql: localDay(site), type: scalarType('date') });

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
    type: scalarType('datetime', true),
  };
};

/**
 * A number of seconds or a common time string. Formats are not supported, because a mismatch would fail the query.
 */
const toTimestamp: Emitter = (site) => {
  const format = optionalArgumentSql(site, 1);
  const value = argument(site, 0);
  if (format !== undefined)
    throw argumentError(
      site,
      1,
      `Function '${site.name}' does not support a format: a string that does not match it would make the query fail.`,
      "Use parseDateTime(string, '%Y-%m-%d %H:%i:%s').",
    );
  return timeOf({ ...site, values: [value] }, null);
};

const toChar: Emitter = (site) => {
  const value = argument(site, 0);
  const format = argument(site, 1).constant;
  // As in the best-known product with this dialect.
  const isTime = value.type.kind === 'datetime' || value.type.kind === 'date';
  if (isTime && typeof format === 'string' && format.includes('%')) return formatDateTime(site);
  const type = scalarType('string', value.type.nullable);
  if (value.type.kind === 'datetime')
    return {
      sql: sql`to_char(${value.sql} at time zone ${zoneAt(site, null)}, ${argumentSql(site, 1)})`,
      type,
    };
  if (value.type.kind === 'date' || value.type.kind === 'interval' || isNumber(value.type))
    return { sql: sql`to_char(${value.sql}, ${argumentSql(site, 1)})`, type };
  throw argumentError(
    site,
    0,
    `Function 'to_char' expects a time or a number, found ${nameOfType(value.type)}.`,
  );
};

const unixUnits = [
  ['Second', 'seconds', 1],
  ['Milli', 'milliseconds', 1e3],
  ['Micro', 'microseconds', 1e6],
  ['Nano', 'nanoseconds', 1e9],
] as const;

/** `toUnixTimestamp64Milli`, `fromUnixTimestamp64Milli` and so on. */
const unixTimes = unixUnits.flatMap(([name, unit, count]): readonly FunctionDefinition[] => {
  const factor = rawSql(String(count));
  return [
    scalar(`toUnixTimestamp64${name}(datetime): integer`, `The ${unit} since 1970.`, (site) => {
      const value = argument(site, 0);
      const number = sql`floor(extract(epoch from ${value.sql}) * ${factor})`;
      return {
        sql: sql`(case when abs(${number}) < 9.2e18 then (${number})::int8 end)`,
        type: scalarType('integer', true),
      };
    }),
    scalar(
      `fromUnixTimestamp64${name}(integer, string?): datetime`,
      `A time from ${unit} since 1970.`,
      (site) => ({
        sql: secondsOrNull(sql`((${argumentSql(site, 0)})::numeric / ${factor})`),
        type: datetimeTypeAt(site, 1, true),
      }),
    ),
  ];
});

/** The current time, conversions and formats. Times are in the project's zone unless another is given. */
export const timeFunctions: readonly FunctionDefinition[] = [
  standardScalar(
    'now(string?): datetime',
    'The current time, in another time zone if one is given.',
    (site) => ({
      sql: site.statement.now,
      type: datetimeTypeAt(site, 0, false),
    }),
  ),
  scalar('today(): date', 'Today.', today),
  scalar('yesterday(): date', 'Yesterday.', (site) => ({
    sql: sql`(${localDay(site)} - 1)`,
    type: scalarType('date'),
  })),
  standardScalar('current_date(): date', 'Today.', today),
  scalar('toDate(any, string?): date', 'The value as a date, or null.', toDate),
  scalar('toDateTime(any, string?): datetime', 'The value as a time, or null.', (site) => timeOf(site, 1)),
  scalar(
    'toDateTime64(any, integer?, string?): datetime',
    'The value as a time with fractional seconds, or null.',
    (site) => timeOf(site, 2),
    { ranges: [{ index: 1, min: 0, max: 9 }] },
  ),
  scalar(
    'parseDateTime(string, string, string?): datetime',
    'A string in a format as a time.',
    parseDateTime,
  ),
  scalar(
    'parseDateTimeBestEffort(string, string?): datetime',
    'A string in any common format as a time, or null.',
    (site) => {
      const type = datetimeTypeAt(site, 1, true);
      return { sql: parseTimeText(site, argument(site, 0).sql, type), type };
    },
  ),
  scalar('toTimeZone(datetime, string): datetime', 'The time in another time zone.', (site) => {
    const { sql: moment, type } = argument(site, 0);
    return { sql: moment, type: datetimeTypeAt(site, 1, type.nullable) };
  }),
  scalar('fromUnixTimestamp(number): datetime', 'A time from seconds since 1970.', (site) => ({
    sql: secondsOrNull(sql`(${argumentSql(site, 0)})::float8`),
    type: scalarType('datetime', true),
  })),
  scalar(
    'formatDateTime(date_or_datetime, string, string?): string',
    'A time formatted with % specifiers.',
    formatDateTime,
  ),
  standardScalar('make_date(integer, integer, integer): date', 'A date from its parts.', (site) => ({
    sql: computeSqlOnce(
      [argumentSql(site, 0), argumentSql(site, 1), argumentSql(site, 2)],
      (y = sql``, m = sql``, d = sql``) => dayOf(y, m, d),
    ),
    type: scalarType('date', true),
  })),
  standardScalar(
    'make_timestamp(integer, integer, integer, integer, integer, number): datetime',
    'A time from its parts.',
    makeTimestamp,
  ),
  standardScalar(
    'to_char(any, string): string',
    'A time formatted with % specifiers, or a value in a PostgreSQL format.',
    toChar,
  ),
  ...unixTimes,
  scalar('timeZoneOf(datetime): string', 'The time zone of a time.', (site) => ({
    sql: zoneAt(site, null),
    type: scalarType('string'),
  })),
  scalar('UUIDv7ToDateTime(uuid, string?): datetime', 'The time in a UUID of version 7, or null.', (site) => {
    const text = sql`(${argumentSql(site, 0)})::text`;
    const milliseconds = sql`('x' || substr(${text}, 1, 8) || substr(${text}, 10, 4))::bit(48)::int8`;
    return {
      sql: sql`(case when substr(${text}, 15, 1) = '7' then ${secondsOrNull(sql`(${milliseconds} / 1000.0)`)} end)`,
      type: datetimeTypeAt(site, 1, true),
    };
  }),
  standardScalar(
    'to_timestamp(any, string?): datetime',
    'A time from seconds since 1970, or from a string.',
    toTimestamp,
  ),
];
