import { computeSqlOnce } from '../compile/compiler.ts';
import { dateParts } from '../compile/times/local_times.ts';
import { rawSql, sql, type Sql } from '../sql.ts';
import { TimeZone, scalarType } from '../types.ts';
import {
  argument,
  argumentError,
  type CallSite,
  type Emitter,
  type FunctionDefinition,
  scalar,
  standardScalar,
  instantAt,
  localTime,
  unitAt,
  zoneAt,
} from './function_definition.ts';

/** A part of a local time in its zone. */
const part =
  (make: (local: Sql) => Sql): Emitter =>
  (site) => ({
    sql: make(localTime(site, 0, zoneAt(site, 1))),
    type: scalarType('integer', argument(site, 0).type.nullable),
  });

const field = (name: string): Emitter => part((local) => sql`(extract(${rawSql(name)} from ${local}))::int8`);
const digits = (pattern: string): Emitter =>
  part((local) => sql`(to_char(${local}, '${rawSql(pattern)}'))::int8`);

/** Weeks of the year as in MySQL: the mode selects the first weekday and the first week. */
function weekOf(site: CallSite, withYear: boolean): Sql {
  const modeArgument = site.values[1];
  const mode = modeArgument === undefined ? 0 : Number(modeArgument.constant ?? NaN);
  if (!Number.isInteger(mode) || mode < 0 || mode > 7)
    throw argumentError(site, 1, `The mode of '${site.name}' must be an integer from 0 to 7.`);
  const monday = (mode & 1) === 1;
  const usesYearOfWeek = withYear || (mode & 2) === 2;
  const fullWeek = ((mode & 4) === 4) === monday;
  const startOf = (day: Sql): Sql =>
    monday
      ? sql`(${day} - (extract(isodow from ${day})::int4 - 1))`
      : sql`(${day} - extract(dow from ${day})::int4)`;
  return computeSqlOnce([sql`(${localTime(site, 0, zoneAt(site, 2))})::date`], (day = sql``) => {
    const start = startOf(day);
    if (usesYearOfWeek) {
      // The year of a week is that of its first day, or of its fourth.
      const anchor = fullWeek ? start : sql`(${start} + 3)`;
      const week = sql`((extract(doy from ${anchor})::int4 - 1) / 7 + 1)`;
      return withYear ? sql`(extract(year from ${anchor})::int8 * 100 + ${week})` : sql`(${week})::int8`;
    }
    const first = startOf(sql`(date_trunc('year', ${day}::timestamp)::date + ${fullWeek ? sql`6` : sql`3`})`);
    return sql`((${start} - ${first} + 7) / 7)::int8`;
  });
}

const week =
  (withYear: boolean): Emitter =>
  (site) => ({ sql: weekOf(site, withYear), type: scalarType('integer', argument(site, 0).type.nullable) });

const names: Readonly<Record<string, string>> = {
  year: 'FMYYYY',
  quarter: 'FMQ',
  month: 'FMMonth',
  dayofyear: 'FMDDD',
  day: 'FMDD',
  week: 'FMIW',
  weekday: 'FMDay',
  hour: 'FMHH24',
  minute: 'FMMI',
  second: 'FMSS',
};

const dateName: Emitter = (site) => {
  const name = String(argument(site, 0).constant ?? '').toLowerCase();
  const pattern = Object.hasOwn(names, name) ? names[name] : undefined;
  if (pattern === undefined)
    throw argumentError(site, 0, `The part must be one of ${Object.keys(names).join(', ')}.`);
  return {
    sql: sql`to_char(${localTime(site, 1, zoneAt(site, 2, 1))}, '${rawSql(pattern)}')`,
    type: scalarType('string', argument(site, 1).type.nullable),
  };
};

const standardParts: Readonly<Record<string, string>> = {
  dow: 'dow',
  isodow: 'isodow',
  doy: 'doy',
  epoch: 'epoch',
  isoyear: 'isoyear',
};

const datePart: Emitter = (site) => {
  const name = argument(site, 0).constant;
  const zone = zoneAt(site, null, 1);
  const local = localTime(site, 1, zone);
  const type = scalarType('float', argument(site, 1).type.nullable);
  const known = typeof name === 'string' ? standardParts[name.toLowerCase()] : undefined;
  if (known === 'epoch') return { sql: sql`(extract(epoch from ${instantAt(site, 1, zone)}))::float8`, type };
  // As in toDayOfWeek, Sunday is 7.
  if (known === 'dow') return { sql: sql`(extract(isodow from ${local}))::float8`, type };
  if (known !== undefined) return { sql: sql`(extract(${rawSql(known)} from ${local}))::float8`, type };
  const unit = unitAt(site, 0);
  if (unit === 'second') return { sql: sql`(extract(second from ${local}))::float8`, type };
  return { sql: sql`(${dateParts[unit]?.(local) ?? sql`null`})::float8`, type };
};

/** Parts of dates and times. */
export const datePartFunctions: readonly FunctionDefinition[] = [
  scalar('toYear(date_or_datetime, string?): integer', 'The year.', field('year')),
  scalar('toQuarter(date_or_datetime, string?): integer', 'The quarter, from 1.', field('quarter')),
  scalar('toMonth(date_or_datetime, string?): integer', 'The month, from 1.', field('month')),
  scalar('toDayOfYear(date_or_datetime, string?): integer', 'The day of the year, from 1.', field('doy')),
  scalar('toDayOfMonth(date_or_datetime, string?): integer', 'The day of the month.', field('day')),
  scalar(
    'toDayOfWeek(date_or_datetime, string?): integer',
    'The day of the week, 1 is Monday.',
    field('isodow'),
  ),
  scalar('toHour(date_or_datetime, string?): integer', 'The hour.', field('hour')),
  scalar('toMinute(date_or_datetime, string?): integer', 'The minute.', field('minute')),
  scalar(
    'toSecond(date_or_datetime, string?): integer',
    'The second.',
    part((local) => sql`(floor(extract(second from ${local})))::int8`),
  ),
  scalar('toUnixTimestamp(date_or_datetime, string?): integer', 'Seconds since 1970.', (site) => {
    const { type } = argument(site, 0);
    // As in ClickHouse, a date starts at midnight UTC, whatever the project's zone is.
    const zone = type.kind === 'date' ? new TimeZone('UTC') : zoneAt(site, 1);
    return {
      sql: sql`(floor(extract(epoch from ${instantAt(site, 0, zone)})))::int8`,
      type: scalarType('integer', type.nullable),
    };
  }),
  scalar('toISOWeek(date_or_datetime, string?): integer', 'The ISO 8601 week.', field('week')),
  scalar('toISOYear(date_or_datetime, string?): integer', 'The ISO 8601 year.', field('isoyear')),
  scalar('toWeek(date_or_datetime, integer?, string?): integer', 'The week of the year.', week(false)),
  scalar(
    'toYearWeek(date_or_datetime, integer?, string?): integer',
    'Year and week as one number.',
    week(true),
  ),
  scalar('toYYYYMM(date_or_datetime, string?): integer', 'Year and month as one number.', digits('YYYYMM')),
  scalar(
    'toYYYYMMDD(date_or_datetime, string?): integer',
    'Year, month and day as one number.',
    digits('YYYYMMDD'),
  ),
  standardScalar('date_part(string, date_or_datetime): float', 'A part of a time.', datePart),
  scalar('dateName(string, date_or_datetime, string?): string', 'A part of a time as a name.', dateName),
  scalar('monthName(date_or_datetime): string', 'The name of the month.', (site) => ({
    sql: sql`to_char(${localTime(site, 0, zoneAt(site, null))}, 'FMMonth')`,
    type: scalarType('string', argument(site, 0).type.nullable),
  })),
];
