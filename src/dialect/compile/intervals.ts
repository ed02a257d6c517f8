import type { Interval } from '../ast.ts';
import type { TimeUnit } from '../keywords.ts';
import type { Scope } from '../resolve/scope.ts';
import type { Statement } from '../resolve/statement.ts';
import { derive, type Value } from '../resolve/value.ts';
import { rawSql, sql, type Sql } from '../sql.ts';
import {
  intervalOfUnit,
  intervalUnitOf,
  isNumber,
  nameOfType,
  scalar,
  type Type,
  withNull,
} from '../types.ts';
import { readConstant } from './coerce.ts';
import type { Compiler } from './compiler.ts';
import { addCalendar, startOfDay } from './local_times.ts';

const makers: Readonly<Record<TimeUnit, (amount: Sql) => Sql>> = {
  microsecond: (amount) => sql`make_interval(secs => (${amount})::float8 / 1000000)`,
  millisecond: (amount) => sql`make_interval(secs => (${amount})::float8 / 1000)`,
  second: (amount) => sql`make_interval(secs => (${amount})::float8)`,
  minute: (amount) => sql`make_interval(mins => (${amount})::int4)`,
  hour: (amount) => sql`make_interval(hours => (${amount})::int4)`,
  day: (amount) => sql`make_interval(days => (${amount})::int4)`,
  week: (amount) => sql`make_interval(weeks => (${amount})::int4)`,
  month: (amount) => sql`make_interval(months => (${amount})::int4)`,
  quarter: (amount) => sql`make_interval(months => (${amount})::int4 * 3)`,
  year: (amount) => sql`make_interval(years => (${amount})::int4)`,
};

const clockUnits: ReadonlySet<TimeUnit> = new Set(['microsecond', 'millisecond', 'second', 'minute', 'hour']);

/** An interval of an amount of a unit. Fractions of hours and minutes become seconds. */
export function intervalOf(amount: Value, unit: TimeUnit): Value {
  const seconds = { minute: 60, hour: 3_600 }[unit as 'minute' | 'hour'] as number | undefined;
  const fragment =
    seconds !== undefined && amount.type.kind === 'float'
      ? sql`make_interval(secs => (${amount.sql})::float8 * ${rawSql(String(seconds))})`
      : makers[unit](amount.sql);
  const type = intervalOfUnit(clockUnits.has(unit) ? 'clock' : 'calendar', amount.type.nullable);
  return derive(`interval ${unit}`, [amount], type, fragment);
}

export function intervalValue(compiler: Compiler, node: Interval, scope: Scope): Value {
  const amountValue = compiler.value(node.amount, scope);
  const amount = readConstant(amountValue, scalar('integer'), scope.statement) ?? amountValue;
  if (!isNumber(amount.type) && amount.type.kind !== 'null')
    throw scope.statement.error(
      `The amount of an INTERVAL must be a number, found ${nameOfType(amount.type)}.`,
      node.amount,
    );
  return intervalOf(amount, node.unit);
}

/**
 * Adds an interval to a time. Adding days keeps the local time across clock changes; hours are elapsed time. Only days and
 * months added to a date make a date.
 */
export function addInterval(time: Value, interval: Value, sign: '+' | '-', statement: Statement): Value {
  const nullable = time.type.nullable || interval.type.nullable;
  const operator = rawSql(sign);
  const unit = intervalUnitOf(interval.type);
  const of = (fragment: Sql, type: Type): Value =>
    derive(sign, [time, interval], withNull(type, nullable), fragment);
  const isDate = time.type.kind === 'date';
  if (isDate && unit === 'calendar')
    return of(sql`(${time.sql} ${operator} ${interval.sql})::date`, scalar('date'));
  const zone = statement.zoneOf(time.type);
  const moment = isDate ? startOfDay(time.sql, zone) : time.sql;
  const type = isDate ? scalar('datetime') : time.type;
  switch (unit) {
    case 'clock':
      return of(sql`(${moment} ${operator} ${interval.sql})`, type);
    case 'calendar':
      return of(addCalendar(moment, operator, interval.sql, zone), type);
    case undefined: {
      const days = sql`date_trunc('day', ${interval.sql})`;
      const rest = sql`(${interval.sql} - ${days})`;
      return of(sql`(${addCalendar(moment, operator, days, zone)} ${operator} ${rest})`, type);
    }
  }
}
