import type { Node } from '../../ast.ts';
import type { Statement } from '../../resolve/statement.ts';
import { derive, type Value } from '../../resolve/value.ts';
import { bind, rawSql, sql, type Sql } from '../../sql.ts';
import {
  commonTypeOf,
  isComposite,
  isNumber,
  nameOfType,
  scalarType,
  timeIn,
  type Type,
  zoneOf,
} from '../../types.ts';
import { parseDate, parseTime, startOfDay } from '../times/local_times.ts';
import { firstReading, notText } from './readings.ts';

/** The PostgreSQL type of a dialect type. */
export function postgresType(type: Type): Sql {
  return rawSql(postgresTypes[type.kind]);
}

const postgresTypes: Readonly<Record<Type['kind'], string>> = {
  string: 'text',
  integer: 'int8',
  float: 'float8',
  decimal: 'numeric',
  boolean: 'bool',
  date: 'date',
  datetime: 'timestamptz',
  uuid: 'uuid',
  interval: 'interval',
  json: 'jsonb',
  null: 'text',
  array: 'jsonb',
  tuple: 'jsonb',
  map: 'jsonb',
};

/** A value as jsonb. Datetimes are ISO 8601 in UTC, so that they sort as text. */
export function toJson(value: Sql, type: Type): Sql {
  switch (type.kind) {
    case 'array':
    case 'tuple':
    case 'map':
      return value;
    case 'json':
      return sql`(${value})::jsonb`;
    case 'datetime':
      return sql`to_jsonb(to_char((${value}) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))`;
    case 'null':
      return sql`'null'::jsonb`;
    default:
      return sql`to_jsonb(${value})`;
  }
}

/** A jsonb argument of a list, where SQL null must become JSON null. */
export const toJsonItem = (value: Sql, type: Type): Sql =>
  type.nullable && type.kind !== 'null'
    ? sql`coalesce(${toJson(value, type)}, 'null'::jsonb)`
    : toJson(value, type);

/** A value read from JSON. `item` is jsonb and `text` the same value unquoted. */
export function fromJson(item: Sql, text: Sql, type: Type): Sql {
  switch (type.kind) {
    case 'array':
    case 'tuple':
    case 'map':
    case 'json':
      return item;
    case 'string':
    case 'null':
      return text;
    default:
      return sql`(${text})::${postgresType(type)}`;
  }
}

/** The default that ClickHouse returns for a missing value: zero, an empty string, the epoch. */
export function defaultOf(type: Type): Sql {
  if (type.nullable) return sql`null::${postgresType(type)}`;
  switch (type.kind) {
    case 'string':
      return sql`''::text`;
    case 'boolean':
      return sql`false`;
    case 'date':
      return sql`'1970-01-01'::date`;
    case 'datetime':
      return sql`'1970-01-01T00:00:00Z'::timestamptz`;
    case 'uuid':
      return sql`'00000000-0000-0000-0000-000000000000'::uuid`;
    case 'interval':
      return sql`'0'::interval`;
    case 'array':
    case 'tuple':
      return sql`'[]'::jsonb`;
    case 'map':
      return sql`'{}'::jsonb`;
    case 'json':
      return sql`'null'::jsonb`;
    case 'integer':
    case 'float':
    case 'decimal':
    case 'null':
      return sql`0::${postgresType(type)}`;
  }
}

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

/** JSON text without blanks between its items. */
export const compactText = (json: Sql): Sql =>
  sql`regexp_replace((${json})::text, '("([^"\\\\]|\\\\.)*")|\\s', '\\1', 'g')`;

/**
 * Arrays and objects are greater than all scalars, except for the empty array, which has no blanks. The first letter is
 * compared first: to read the document again as jsonb costs more.
 */
export const compactIfComposite = (json: Sql, text: Sql): Sql =>
  sql`(case when left(${text}, 1) in ('[', '{') and (${json})::jsonb > 'true'::jsonb then ${compactText(text)} else ${text} end)`;

/**
 * A value where blanks in arrays and objects make no difference. It reads a property once, and indexes on the property are
 * used.
 */
export const spacedSql = ({ sql: fragment, spaced }: Value): Sql => spaced ?? fragment;

/** How conditions can read a text. A conversion to a string keeps it. */
export const textDetails = ({ stored, spaced }: Value): Pick<Value, 'stored' | 'spaced'> => ({
  ...(stored && { stored }),
  ...(spaced && { spaced }),
});

/** The same value without regard to blanks. */
export const spacedValue = (value: Value): Value => ({
  ...value,
  sql: spacedSql(value),
  ...(value.text && { text: spacedValue(value.text) }),
});

const jsonToString = (json: Sql): Sql => compactIfComposite(json, sql`((${json})::jsonb #>> '{}')`);

/** How all queries read a property as a number; empty for other texts. */
export const definitionHint = ({ json }: Value): string =>
  json === undefined ? '' : ' "exportd property define" makes all queries read it as a number.';

/** Converts values to their common type. @throws DialectError if there is none */
export function unify(
  values: readonly Value[],
  nodes: readonly Node[],
  statement: Statement,
  what: string,
): { readonly type: Type; readonly fragments: readonly Sql[] } {
  const common = firstReading(values, statement, (read) => {
    const type = commonTypeOf(read.map((value) => value.type));
    return type && { type, fragments: read.map((value) => coerce(value, type, statement)) };
  });
  if (common === null) {
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
  return common;
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
      if (day !== null) return of(bind(day, 'date'), scalarType('date'));
      return readConstant(value, scalarType('datetime'), statement);
    }
    case 'uuid':
      return /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text)
        ? of(bind(text, 'uuid'), scalarType('uuid'))
        : undefined;
    case 'integer':
      return /^[-+]?\d{1,18}$/.test(text)
        ? of(bind(text, 'int8'), scalarType('integer'))
        : readNumber(value, text);
    case 'float':
    case 'decimal':
      return readNumber(value, text);
    case 'boolean':
      return /^(true|false|0|1)$/i.test(text)
        ? of(/^(true|1)$/i.test(text) ? sql`true` : sql`false`, scalarType('boolean'))
        : undefined;
    default:
      return undefined;
  }
}

const readNumber = (value: Value, text: string): Value | undefined =>
  /^[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d{1,2})?$/i.test(text) && text.length < 100
    ? derive('read Float64', [value], scalarType('float'), bind(text, 'float8'))
    : undefined;

/** A boolean from a boolean or number, as in ClickHouse. @throws DialectError for other types */
export function toCondition(value: Value, node: Node, statement: Statement): Sql {
  if (value.type.kind === 'boolean') return value.sql;
  if (isNumber(value.type)) return sql`(${value.sql} <> 0)`;
  if (value.type.kind === 'null') return sql`null::bool`;
  const other = notText(value, statement);
  if (other !== value) return toCondition(other, node, statement);
  throw statement.error(
    `Expected a condition, found ${nameOfType(value.type)}.`,
    node,
    value.type.kind === 'string' ? "Compare it, for example with `!= ''`." : null,
  );
}

/** The item type of an array; the null type for other values. */
export const itemTypeOf = ({ type }: Value): Type =>
  type.kind === 'array' ? type.item : scalarType('null', true);

/** A FROM item with the array's items: `each.v` as jsonb and `each.at`, the index from 1. */
export const unnestWithIndex = (array: Sql): Sql =>
  sql`jsonb_array_elements(${array}) with ordinality as each(v, at)`;

/** A value as a string. Datetimes are local times of their zone, or of `zone`, without an offset. */
export function toStringSql(
  { sql: fragment, type }: Value,
  statement: Statement,
  zone: Sql = statement.zoneOf(type),
): Sql {
  switch (type.kind) {
    case 'string':
    case 'null':
      return fragment;
    case 'datetime':
      return sql`regexp_replace(to_char(${fragment} at time zone ${zone}, 'YYYY-MM-DD HH24:MI:SS.US'), '[.]000000$', '')`;
    case 'date':
      return sql`to_char(${fragment}, 'YYYY-MM-DD')`;
    case 'json':
      return jsonToString(fragment);
    case 'float':
      return sql`(case (${fragment})::text when 'NaN' then 'nan' when 'Infinity' then 'inf' when '-Infinity' then '-inf'
        else (${fragment})::text end)`;
    default:
      return sql`(${fragment})::text`;
  }
}
