import type { Expression } from '../ast.ts';
import { intervalOf } from '../compile/expressions/arithmetic.ts';
import { startOfDay, timeZoneNamed } from '../compile/times/local_times.ts';
import type { TimeUnit } from '../lexer.ts';
import { derive, type Value } from '../resolve/value.ts';
import { rawSql, sql, type Sql } from '../sql.ts';
import { TimeZone } from '../time_zone.ts';
import { isNumber, nameOfType, scalarType, timeIn, type Type, zoneOf } from '../types.ts';
import { argument, argumentError, argumentNode, type CallSite } from './function_definition.ts';

/** The names of each unit in strings. */
const unitNames: Readonly<Record<TimeUnit, readonly string[]>> = {
  microsecond: ['microsecond', 'microseconds', 'us', 'u'],
  millisecond: ['millisecond', 'milliseconds', 'ms'],
  second: ['second', 'seconds', 'ss', 's'],
  minute: ['minute', 'minutes', 'mi', 'n'],
  hour: ['hour', 'hours', 'hh', 'h'],
  day: ['day', 'days', 'dd', 'd'],
  week: ['week', 'weeks', 'wk', 'ww'],
  month: ['month', 'months', 'mm', 'm'],
  quarter: ['quarter', 'quarters', 'qq', 'q'],
  year: ['year', 'years', 'yyyy', 'yy'],
};
const units = new Map(
  Object.entries(unitNames).flatMap(([unit, names]) => names.map((name) => [name, unit as TimeUnit])),
);

/** The unit that a string literal names. @throws DialectError */
export function unitAt(site: CallSite, index: number): TimeUnit {
  const name = argument(site, index).constant;
  const unit = typeof name === 'string' ? units.get(name.toLowerCase()) : undefined;
  if (unit === undefined)
    throw argumentError(
      site,
      index,
      `The unit of '${site.name}' must be second, minute, hour, day, week, month, quarter or year.`,
    );
  return unit;
}

/** Maximum amounts; larger ones would make PostgreSQL fail. */
const maxAmounts: Readonly<Record<TimeUnit, number>> = {
  microsecond: 1e17,
  millisecond: 1e14,
  second: 1e11,
  minute: 2e9,
  hour: 3e7,
  day: 1e6,
  week: 1e5,
  month: 4e4,
  quarter: 1e4,
  year: 4e3,
};

/** An interval of an amount of units; null if out of range. Fractions are truncated. */
export function intervalOfUnits(amount: Value, unit: TimeUnit): Value {
  const { constant } = amount;
  if (typeof constant === 'bigint' && Math.abs(Number(constant)) <= maxAmounts[unit])
    return intervalOf(amount, unit);
  const limit = rawSql(String(maxAmounts[unit]));
  const whole = sql`(case when ${amount.sql} between -${limit} and ${limit} then trunc((${amount.sql})::float8) end)`;
  return intervalOf(derive('trunc', [amount], scalarType('integer', true), whole), unit);
}

/** The amount and unit of an interval literal; computed intervals have no single unit. @throws DialectError */
export function constantInterval(
  site: CallSite,
  index: number,
): { readonly amount: Value; readonly unit: TimeUnit } {
  const node = site.nodes[index];
  const part = node === undefined ? null : intervalParts(node);
  if (node === undefined || part === null)
    throw argumentError(
      site,
      index,
      `The interval of '${site.name}' must be a literal.`,
      'Write INTERVAL 15 MINUTE or toIntervalMinute(15).',
    );
  const amount = site.compiler.value(part.amount, site.scope);
  if (!isNumber(amount.type))
    throw site.statement.error(
      `The amount of an interval must be a number, found ${nameOfType(amount.type)}.`,
      part.amount,
    );
  return { amount, unit: part.unit };
}

function intervalParts(node: Expression): { readonly amount: Expression; readonly unit: TimeUnit } | null {
  if (node.kind === 'interval') return { amount: node.amount, unit: node.unit };
  const [amount] = node.kind === 'call' ? node.arguments : [];
  if (node.kind !== 'call' || amount === undefined || !node.name.text.startsWith('toInterval')) return null;
  const unit = units.get(node.name.text.slice('toInterval'.length).toLowerCase());
  return unit === undefined ? null : { amount, unit };
}

/**
 * The time zone of a call: that of an argument if present, else that of a datetime's type, else the project's.
 * @throws DialectError for an unknown zone
 */
export const zoneAt = (site: CallSite, index: number | null, time = 0): TimeZone =>
  new TimeZone(zoneNameAt(site, index, time) ?? site.statement.project.timezone);

/** The type of a datetime in the zone of `zoneAt`. */
export const datetimeTypeAt = (site: CallSite, index: number | null, nullable: boolean, time = 0): Type =>
  timeIn(zoneNameAt(site, index, time), nullable);

function zoneNameAt(site: CallSite, index: number | null, time: number): string | undefined {
  const named = index === null ? undefined : site.values[index];
  if (index !== null && named !== undefined) return zoneNamed(site, named.constant, index);
  const value = site.values[time];
  return value === undefined ? undefined : zoneOf(value.type);
}

function zoneNamed(site: CallSite, name: unknown, index: number): string {
  if (typeof name !== 'string')
    throw argumentError(site, index, "The time zone must be a string literal such as 'Europe/Berlin'.");
  return timeZoneNamed(name, argumentNode(site, index), site.statement);
}

/** A date or datetime as local time of a zone. */
export function localTime(site: CallSite, index: number, zone: Sql): Sql {
  const { sql: fragment, type } = argument(site, index);
  return type.kind === 'date'
    ? sql`(${fragment})::timestamp`
    : sql`((${fragment})::timestamptz at time zone ${zone})`;
}

/** A date or datetime as an instant. A date is the start of its day in a zone. */
export function instantAt(site: CallSite, index: number, zone: TimeZone): Sql {
  const { sql: fragment, type } = argument(site, index);
  return type.kind === 'date' ? startOfDay(fragment, zone) : fragment;
}
