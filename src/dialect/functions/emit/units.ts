import type { Expression } from '../../ast.ts';
import { intervalOf } from '../../compile/intervals.ts';
import { argument, type CallSite, argumentNode } from '../../compile/functions/call_site.ts';
import type { TimeUnit } from '../../keywords.ts';
import { derive, type Value } from '../../resolve/value.ts';
import { rawSql, sql } from '../../sql.ts';
import { isNumber, nameOfType, scalar } from '../../types.ts';

const units: Readonly<Record<string, TimeUnit>> = {
  microsecond: 'microsecond',
  microseconds: 'microsecond',
  us: 'microsecond',
  u: 'microsecond',
  millisecond: 'millisecond',
  milliseconds: 'millisecond',
  ms: 'millisecond',
  second: 'second',
  seconds: 'second',
  ss: 'second',
  s: 'second',
  minute: 'minute',
  minutes: 'minute',
  mi: 'minute',
  n: 'minute',
  hour: 'hour',
  hours: 'hour',
  hh: 'hour',
  h: 'hour',
  day: 'day',
  days: 'day',
  dd: 'day',
  d: 'day',
  week: 'week',
  weeks: 'week',
  wk: 'week',
  ww: 'week',
  month: 'month',
  months: 'month',
  mm: 'month',
  m: 'month',
  quarter: 'quarter',
  quarters: 'quarter',
  qq: 'quarter',
  q: 'quarter',
  year: 'year',
  years: 'year',
  yyyy: 'year',
  yy: 'year',
};

/** The unit that a string literal names. @throws DialectError */
export function unitAt(site: CallSite, index: number): TimeUnit {
  const name = argument(site, index).constant;
  const unit =
    typeof name === 'string' && Object.hasOwn(units, name.toLowerCase())
      ? units[name.toLowerCase()]
      : undefined;
  if (unit === undefined)
    throw site.statement.error(
      `The unit of '${site.name}' must be second, minute, hour, day, week, month, quarter or year.`,
      argumentNode(site, index),
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
  return intervalOf(derive('trunc', [amount], scalar('integer', true), whole), unit);
}

/** The amount and unit of an interval literal; computed intervals have no single unit. @throws DialectError */
export function constantInterval(
  site: CallSite,
  index: number,
): { readonly amount: Value; readonly unit: TimeUnit } {
  const node = site.nodes[index];
  const part = node === undefined ? null : intervalParts(node);
  if (node === undefined || part === null)
    throw site.statement.error(
      `The interval of '${site.name}' must be a literal.`,
      argumentNode(site, index),
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
  const unit = units[node.name.text.slice('toInterval'.length).toLowerCase()];
  return unit === undefined ? null : { amount, unit };
}
