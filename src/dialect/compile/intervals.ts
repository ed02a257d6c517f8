import type { Interval } from '../ast.ts';
import type { TimeUnit } from '../keywords.ts';
import type { Scope } from '../resolve/scope.ts';
import type { Statement } from '../resolve/statement.ts';
import { derive, type Value } from '../resolve/value.ts';
import { rawSql, sql, type Sql } from '../sql.ts';
import { isNumber, nameOfType, scalar, withNull } from '../types.ts';
import { readConstant } from './coerce.ts';
import type { Compiler } from './compiler.ts';

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

/** An interval of an amount of a unit. Fractions of hours and minutes become seconds. */
export function intervalOf(amount: Value, unit: TimeUnit): Value {
  const seconds = { minute: 60, hour: 3_600 }[unit as 'minute' | 'hour'] as number | undefined;
  const fragment =
    seconds !== undefined && amount.type.kind === 'float'
      ? sql`make_interval(secs => (${amount.sql})::float8 * ${rawSql(String(seconds))})`
      : makers[unit](amount.sql);
  return derive(fragment, scalar('interval', amount.type.nullable), [amount]);
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

/** Adds an interval to a time. Adding days keeps the time of day across clock changes. */
export function addInterval(time: Value, interval: Value, sign: '+' | '-', statement: Statement): Value {
  const nullable = time.type.nullable || interval.type.nullable;
  const operator = rawSql(sign);
  if (time.type.kind === 'date') {
    const sum = sql`(${time.sql} ${operator} ${interval.sql})`;
    const isDays = !/secs|mins|hours/.test(interval.sql.key);
    return isDays
      ? derive(sql`${sum}::date`, scalar('date', nullable), [time, interval])
      : derive(sql`(${sum} at time zone ${statement.timezone})`, scalar('datetime', nullable), [
          time,
          interval,
        ]);
  }
  const zone = statement.zoneOf(time.type);
  const fragment = sql`(((${time.sql} at time zone ${zone}) ${operator} ${interval.sql}) at time zone ${zone})`;
  const isElapsed = /^make_interval\((secs|mins|hours)/.test(interval.sql.key);
  return derive(
    isElapsed ? sql`(${time.sql} ${operator} ${interval.sql})` : fragment,
    withNull(time.type, nullable),
    [time, interval],
  );
}
