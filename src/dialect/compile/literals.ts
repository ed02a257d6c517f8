import type { BooleanLiteral, NullLiteral, NumberLiteral, StringLiteral, TimeLiteral } from '../ast.ts';
import type { Statement } from '../resolve/statement.ts';
import type { Constant } from '../resolve/fold_constants.ts';
import { derive, type Value } from '../resolve/value.ts';
import { bind, sql, type Sql } from '../sql.ts';
import { nameOfType, scalar, type Type } from '../types.ts';
import { parseDate, parseTime } from './time_parsing.ts';

const constant = (fragment: Sql, type: Type, value: Constant): Value =>
  derive(`literal ${nameOfType(type)} ${String(value)}`, [], type, fragment, { constant: value });

const largestInteger = 2n ** 63n;

/** A number literal. */
export function numberValue(text: string): Value {
  if (/^(\d+|0x[\da-f]+)$/.test(text)) return integerValue(BigInt(text));
  const number = text === 'inf' ? Infinity : text === 'nan' ? NaN : Number(text);
  return floatValue(number);
}

export function integerValue(value: bigint): Value {
  if (value >= largestInteger || value < -largestInteger) return floatValue(Number(value));
  return constant(bind(value.toString(), 'int8'), scalar('integer'), value);
}

export const floatValue = (value: number): Value =>
  constant(bind(String(value), 'float8'), scalar('float'), value);

export const stringValue = (text: string): Value => constant(bind(text, 'text'), scalar('string'), text);
export const nullValue: Value = constant(sql`null::text`, scalar('null', true), null);
export const booleanValue = (value: boolean): Value =>
  constant(value ? sql`true` : sql`false`, scalar('boolean'), value);

/** @throws DialectError for a string with U+0000 or an invalid time */
export function literalValue(
  literal: NumberLiteral | StringLiteral | BooleanLiteral | NullLiteral | TimeLiteral,
  statement: Statement,
): Value {
  switch (literal.kind) {
    case 'number':
      return numberValue(literal.text);
    case 'string':
      if (literal.value.includes('\0'))
        throw statement.error('A string cannot contain the character U+0000.', literal);
      return stringValue(literal.value);
    case 'boolean':
      return booleanValue(literal.value);
    case 'null':
      return nullValue;
    case 'time':
      return timeValue(literal, statement);
  }
}

function timeValue(literal: TimeLiteral, statement: Statement): Value {
  const { timezone } = statement.project;
  if (literal.type === 'date') {
    const day = parseDate(literal.text, timezone);
    if (day === null) throw statement.error(`'${literal.text}' is not a date.`, literal, 'Write YYYY-MM-DD.');
    return derive(`literal Date ${day}`, [], scalar('date'), bind(day, 'date'));
  }
  const time = parseTime(literal.text, timezone);
  if (time === null)
    throw statement.error(`'${literal.text}' is not a time.`, literal, 'Write YYYY-MM-DD HH:MM:SS.');
  return derive(`literal DateTime ${time}`, [], scalar('datetime'), bind(time, 'timestamptz'));
}
