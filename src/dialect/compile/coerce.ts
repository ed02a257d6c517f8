import type { Node } from '../ast_node.ts';
import type { Statement } from '../resolve/statement.ts';
import { derive, type Value } from '../resolve/value.ts';
import { bind, sql, type Sql } from '../sql.ts';
import {
  commonTypeOf,
  isComposite,
  isNumber,
  nameOfType,
  scalar,
  timeIn,
  type Type,
  zoneOf,
} from '../types.ts';
import { postgresType, toJson } from './json_values.ts';
import { startOfDay } from './local_times.ts';
import { parseDate, parseTime } from './time_parsing.ts';

/** Converts a value to a common type; see `commonType`. */
export function coerce(value: Value, to: Type, statement: Statement): Sql {
  const { type } = value;
  if (type.kind === 'null') return sql`null::${postgresType(to)}`;
  if (type.kind === to.kind) return value.sql;
  if (to.kind === 'datetime' && type.kind === 'date') return startOfDay(value.sql, statement.zoneOf(to));
  if (to.kind === 'date' && type.kind === 'datetime')
    return sql`(((${value.sql}) at time zone ${statement.zoneOf(type)})::date)`;
  if (to.kind === 'string' && type.kind === 'json') return jsonToString(value.sql);
  if (type.kind === 'boolean' && isNumber(to)) return sql`((${value.sql})::int4)::${postgresType(to)}`;
  if (isComposite(to) && !isComposite(type)) return toJson(value.sql, type);
  return sql`(${value.sql})::${postgresType(to)}`;
}

export const jsonToString = (json: Sql): Sql => sql`((${json})::jsonb #>> '{}')`;

/** Converts values to their common type. @throws DialectError if there is none */
export function unify(
  values: readonly Value[],
  nodes: readonly Node[],
  statement: Statement,
  what: string,
): { readonly type: Type; readonly fragments: readonly Sql[] } {
  const type = commonTypeOf(values.map((value) => value.type));
  if (type === null) {
    const names = [...new Set(values.map((value) => nameOfType(value.type)))].join(', ');
    const mismatched = nodes.find((_, index) => {
      const [first, other] = [values[0], values[index]];
      return first !== undefined && other !== undefined && commonTypeOf([first.type, other.type]) === null;
    });
    throw statement.error(
      `${what} have no common type: ${names}.`,
      mismatched ?? nodes[0] ?? { start: 0, end: 0, kind: 'null' },
      'Convert them with toString(), toFloat(), toInt() or toDateTime().',
    );
  }
  return { type, fragments: values.map((value) => coerce(value, type, statement)) };
}

/** Parses a string literal as another type, as ClickHouse does in comparisons; undefined if it does not parse. */
export function readConstant(value: Value, as: Type, statement: Statement): Value | undefined {
  if (typeof value.constant !== 'string') return undefined;
  const text = value.constant;
  const timezone = zoneOf(as) ?? statement.project.timezone;
  const of = (fragment: Sql, type: Type): Value =>
    derive(`read ${nameOfType(type)}`, [value], type, fragment);
  switch (as.kind) {
    case 'datetime': {
      const time = parseTime(text, timezone);
      return time === null ? undefined : of(bind(time, 'timestamptz'), timeIn(zoneOf(as), false));
    }
    case 'date': {
      const isDay = /^\s*\d{4}-\d{2}-\d{2}\s*$/.test(text);
      const day = isDay ? parseDate(text, timezone) : null;
      if (day !== null) return of(bind(day, 'date'), scalar('date'));
      return readConstant(value, scalar('datetime'), statement);
    }
    case 'uuid':
      return /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text)
        ? of(bind(text, 'uuid'), scalar('uuid'))
        : undefined;
    case 'integer':
      return /^[-+]?\d{1,18}$/.test(text)
        ? of(bind(text, 'int8'), scalar('integer'))
        : readNumber(value, text);
    case 'float':
    case 'decimal':
      return readNumber(value, text);
    case 'boolean':
      return /^(true|false|0|1)$/i.test(text)
        ? of(/^(true|1)$/i.test(text) ? sql`true` : sql`false`, scalar('boolean'))
        : undefined;
    default:
      return undefined;
  }
}

const readNumber = (value: Value, text: string): Value | undefined =>
  /^[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d{1,2})?$/i.test(text) && text.length < 100
    ? derive('read Float64', [value], scalar('float'), bind(text, 'float8'))
    : undefined;

/** A boolean from a boolean or number, as in ClickHouse. @throws DialectError for other types */
export function toCondition(value: Value, node: Node, statement: Statement): Sql {
  if (value.type.kind === 'boolean') return value.sql;
  if (isNumber(value.type)) return sql`(${value.sql} <> 0)`;
  if (value.type.kind === 'null') return sql`null::bool`;
  throw statement.error(
    `Expected a condition, found ${nameOfType(value.type)}.`,
    node,
    value.type.kind === 'string' ? "Compare it, for example with `!= ''`." : null,
  );
}
