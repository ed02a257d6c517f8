import type { Arithmetic, Expression, Interval, Unary } from '../../ast.ts';
import type { TimeUnit } from '../../query_text.ts';
import type { Scope } from '../../resolve/scope.ts';
import type { Statement } from '../../resolve/statement.ts';
import { derive, type Value } from '../../resolve/value.ts';
import { rawSql, sql, type Sql } from '../../sql.ts';
import {
  commonType,
  intervalOfUnit,
  intervalUnitOf,
  isNumber,
  nameOfType,
  scalarType,
  type Type,
  withNull,
} from '../../types.ts';
import type { Compiler } from '../compiler.ts';
import { addCalendar, startOfDay } from '../times/local_times.ts';
import { coerce, definitionHint, readConstant } from './coerce.ts';
import { notText } from './readings.ts';

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

const largestAmount = 2 ** 31 - 1;

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
  const amount =
    readConstant(amountValue, scalarType('integer'), scope.statement) ??
    notText(amountValue, scope.statement);
  if (!isNumber(amount.type) && amount.type.kind !== 'null')
    throw scope.statement.error(
      `The amount of an INTERVAL must be a number, found ${nameOfType(amount.type)}.`,
      node.amount,
    );
  const { constant } = amount;
  if (typeof constant !== 'string' && Math.abs(Number(constant ?? 0)) > largestAmount)
    throw scope.statement.error(`An INTERVAL has at most ${largestAmount} units.`, node.amount);
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
    return of(sql`(${time.sql} ${operator} ${interval.sql})::date`, scalarType('date'));
  const zone = statement.zoneOf(time.type);
  const moment = isDate ? startOfDay(time.sql, zone) : time.sql;
  const type = isDate ? scalarType('datetime') : time.type;
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

/** `+ - * / %`. Division is never integer division; division by zero yields infinity, as in ClickHouse. */
export function arithmeticValue(compiler: Compiler, node: Arithmetic, scope: Scope): Value {
  const left = compiler.value(node.left, scope);
  const right = compiler.value(node.right, scope);
  const [first, second] = [notText(left, scope.statement), notText(right, scope.statement)];
  return timeArithmetic(node, first, second, scope) ?? numberArithmetic(node, first, second, scope);
}

function numberArithmetic(node: Arithmetic, left: Value, right: Value, scope: Scope): Value {
  const { operator } = node;
  const first = number(left, node.left, operator, scope);
  const second = number(right, node.right, operator, scope);
  const nullable = first.type.nullable || second.type.nullable;
  if (operator === '/')
    return derive('/', [left, right], scalarType('float', nullable), quotient(first, second));
  const type = withNull(commonType(first.type, second.type) ?? scalarType('float'), nullable);
  if (operator === '%') {
    const gives = scalarType(type.kind === 'integer' ? 'integer' : 'float', true);
    return derive('%', [left, right], gives, remainder(first, second, type, scope));
  }
  const [a, b] = [coerce(first, type, scope.statement), coerce(second, type, scope.statement)];
  // Columns of a warehouse table may be 32-bit; their result may need 64.
  const isWide = type.kind !== 'integer' || first.constant !== undefined || second.constant !== undefined;
  const wide = isWide ? a : sql`(${a})::int8`;
  return derive(operator, [left, right], type, sql`(${wide} ${rawSql(operator)} ${b})`);
}

function number(value: Value, node: Expression, operator: string, scope: Scope): Value {
  const { type } = value;
  if (isNumber(type)) return value;
  if (type.kind === 'boolean')
    return { ...value, sql: sql`(${value.sql})::int4::int8`, type: scalarType('integer', type.nullable) };
  if (type.kind === 'null') return { ...value, sql: sql`null::int8`, type: scalarType('integer', true) };
  throw scope.statement.error(
    `Operator ${operator} requires numbers, found ${nameOfType(type)}.`,
    node,
    type.kind === 'string' ? toNumberHint(value, operator) : null,
  );
}

/** What to write for a string where an operator needs a number. */
const toNumberHint = (text: Value, operator: string): string =>
  `Convert it with toFloat(…) or toInt(…)${operator === '+' ? ', or join strings with || or concat(…)' : ''}.${definitionHint(text)}`;

const asFloat = ({ sql: fragment, type }: Value): Sql =>
  type.kind === 'float' ? fragment : sql`(${fragment})::float8`;

function quotient(left: Value, right: Value): Sql {
  const [a, b] = [asFloat(left), asFloat(right)];
  const isSafe = right.constant !== undefined && right.constant !== null && Number(right.constant) !== 0;
  if (isSafe) return sql`(${a} / ${b})`;
  // 0 * Infinity is NaN, the required result of 0 / 0.
  return sql`(case when ${b} = 0 then ${a} * 'Infinity'::float8 else ${a} / ${b} end)`;
}

/** The remainder, null for division by zero. */
function remainder(left: Value, right: Value, type: Type, scope: Scope): Sql {
  const integers = type.kind === 'integer';
  const to = integers ? type : scalarType('decimal', type.nullable);
  const [a, b] = [coerce(left, to, scope.statement), coerce(right, to, scope.statement)];
  const rest = sql`(${a} % nullif(${b}, 0))`;
  return integers ? rest : sql`(${rest})::float8`;
}

/** Arithmetic of times and intervals; undefined if neither side is one. */
function timeArithmetic(node: Arithmetic, left: Value, right: Value, scope: Scope): Value | undefined {
  const { operator } = node;
  const kinds = [left.type.kind, right.type.kind];
  if (!kinds.some((kind) => kind === 'interval' || kind === 'date' || kind === 'datetime')) return undefined;
  const nullable = left.type.nullable || right.type.nullable;
  const of = (fragment: Sql, type: Type): Value =>
    derive(operator, [left, right], withNull(type, nullable), fragment);
  const isTime = ({ type }: Value): boolean => type.kind === 'date' || type.kind === 'datetime';
  const isInterval = ({ type }: Value): boolean => type.kind === 'interval';
  if (isTime(left) && isInterval(right) && (operator === '+' || operator === '-'))
    return addInterval(left, right, operator, scope.statement);
  if (isInterval(left) && isTime(right) && operator === '+')
    return addInterval(right, left, '+', scope.statement);
  if (isInterval(left) && isInterval(right) && (operator === '+' || operator === '-'))
    return of(
      sql`(${left.sql} ${rawSql(operator)} ${right.sql})`,
      commonType(left.type, right.type) ?? scalarType('interval'),
    );
  // A fraction of a day is elapsed time.
  if (isInterval(left) && isNumber(right.type) && operator === '*')
    return of(
      sql`(${left.sql} * (${right.sql})::float8)`,
      right.type.kind === 'integer' || intervalUnitOf(left.type) === 'clock'
        ? left.type
        : scalarType('interval'),
    );
  if (isTime(left) && isTime(right) && operator === '-') return difference(left, right, scope);
  if (left.type.kind === 'date' && right.type.kind === 'integer' && (operator === '+' || operator === '-'))
    return of(sql`(${left.sql} ${rawSql(operator)} (${right.sql})::int4)`, scalarType('date'));
  if (left.type.kind === 'datetime' && isNumber(right.type) && (operator === '+' || operator === '-'))
    return of(
      sql`(${left.sql} ${rawSql(operator)} make_interval(secs => (${right.sql})::float8))`,
      left.type,
    );
  throw scope.statement.error(
    `Operator ${operator} is not defined for ${nameOfType(left.type)} and ${nameOfType(right.type)}.`,
    node,
    "Use dateDiff('second', a, b), toUnixTimestamp(x) or INTERVAL 1 DAY.",
  );
}

/** Days between dates, seconds between datetimes. */
function difference(left: Value, right: Value, scope: Scope): Value {
  const type = commonType(left.type, right.type) ?? left.type;
  const [a, b] = [coerce(left, type, scope.statement), coerce(right, type, scope.statement)];
  const nullable = left.type.nullable || right.type.nullable;
  const fragment =
    type.kind === 'date' ? sql`(${a} - ${b})::int8` : sql`(extract(epoch from (${a} - ${b})))::float8`;
  return derive(
    '-',
    [left, right],
    scalarType(type.kind === 'date' ? 'integer' : 'float', nullable),
    fragment,
  );
}

/** A negated number. */
export function negatedValue(compiler: Compiler, node: Unary, scope: Scope): Value {
  const value = compiler.value(node.operand, scope);
  if (value.type.kind === 'interval') return derive('negate', [value], value.type, sql`(- ${value.sql})`);
  const taken = number(notText(value, scope.statement), node.operand, '-', scope);
  return derive('negate', [value], taken.type, sql`(- ${taken.sql})`);
}
