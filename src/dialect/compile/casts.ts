import type { TypeName } from '../ast.ts';
import type { Node } from '../ast_node.ts';
import { nearestName } from '../nearest_name.ts';
import { didYouMean } from '../resolve/fields.ts';
import type { Statement } from '../resolve/statement.ts';
import { derive, type Value } from '../resolve/value.ts';
import { sql, type Sql } from '../sql.ts';
import {
  arrayOf,
  isComposite,
  isNumber,
  mapOf,
  nameOfType,
  scalar,
  type ScalarKind,
  timeIn,
  tupleOf,
  type Type,
  withNull,
  zoneOf,
} from '../types.ts';
import { coerce, readConstant } from './coerce.ts';
import { postgresType } from './json_values.ts';
import { castStringTo } from './string_casts.ts';
import { timeZoneNamed } from './time_zones.ts';
import { toStringSql } from './to_string.ts';

const kindsByName: Readonly<Record<string, ScalarKind>> = {
  ...Object.fromEntries(
    ['string', 'text', 'varchar', 'char', 'fixedstring', 'lowcardinality'].map((name) => [
      name,
      'string' as const,
    ]),
  ),
  ...Object.fromEntries(
    [
      'int',
      'integer',
      'bigint',
      'smallint',
      'tinyint',
      'int8',
      'int16',
      'int32',
      'int64',
      'int128',
      'int256',
    ].map((name) => [name, 'integer' as const]),
  ),
  ...Object.fromEntries(
    ['uint8', 'uint16', 'uint32', 'uint64', 'uint128', 'uint256'].map((name) => [name, 'integer' as const]),
  ),
  ...Object.fromEntries(
    ['float', 'double', 'real', 'float32', 'float64'].map((name) => [name, 'float' as const]),
  ),
  ...Object.fromEntries(
    ['decimal', 'numeric', 'decimal32', 'decimal64', 'decimal128'].map((name) => [name, 'decimal' as const]),
  ),
  bool: 'boolean',
  boolean: 'boolean',
  date: 'date',
  date32: 'date',
  datetime: 'datetime',
  datetime32: 'datetime',
  datetime64: 'datetime',
  timestamp: 'datetime',
  timestamptz: 'datetime',
  uuid: 'uuid',
  json: 'json',
  jsonb: 'json',
};

/** The type of a type name. @throws DialectError */
export function typeOfName(node: TypeName, statement: Statement): Type {
  const name = node.name.text.toLowerCase();
  const inner = node.arguments.map((one) => (one.kind === 'named_type' ? one.type : one));
  const types = (): readonly Type[] =>
    inner.flatMap((one) => (one.kind === 'type' ? [typeOfName(one, statement)] : []));
  const [first] = inner;
  if (name === 'nullable' || name === 'lowcardinality') {
    const [type] = types();
    if (type === undefined) throw statement.error(`${node.name.text} requires a type in parentheses.`, node);
    return name === 'nullable' ? withNull(type) : type;
  }
  if (name === 'array') return arrayOf(types()[0] ?? scalar('string', true));
  if (name === 'tuple') {
    const names = node.arguments.flatMap((one) => (one.kind === 'named_type' ? [one.name.text] : []));
    return tupleOf(types(), names);
  }
  if (name === 'map') return mapOf(types()[1] ?? scalar('string', true));
  const kind = Object.hasOwn(kindsByName, name) ? kindsByName[name] : undefined;
  if (kind === undefined)
    throw statement.error(
      `Unknown type '${node.name.text}'.`,
      first === undefined ? node.name : node,
      didYouMean(
        nearestName(name, ['String', 'Int64', 'Float64', 'Bool', 'Date', 'DateTime', 'UUID', 'Decimal']),
      ),
    );
  if (kind === 'datetime') return timeIn(zoneOfType(node, statement), false);
  return scalar(kind);
}

/** `'UTC'` in `DateTime64(3, 'UTC')`. */
function zoneOfType(node: TypeName, statement: Statement): string | undefined {
  const named = node.arguments.find((one) => one.kind === 'string');
  return named && timeZoneNamed(named.value, named, statement);
}

const castOf = (value: Value, to: Type, result: Type, fragment: Sql): Value =>
  derive(castOperation(to), [value], result, fragment);

/** The operation of a cast to a type. */
export const castOperation = (to: Type): string => `cast ${nameOfType(to)}`;

/** Casts a value; unreadable values become null. @throws DialectError if the types cannot be converted */
export function castValue(value: Value, to: Type, node: Node, statement: Statement): Value {
  const { type } = value;
  const cast = (fragment: Sql, result: Type): Value => castOf(value, to, result, fragment);
  if (type.kind === 'null') return cast(coerce(value, to, statement), withNull(to));
  if (isComposite(to) || isComposite(type)) return castComposite(value, to, node, statement);
  if (type.kind === to.kind) {
    const known = to.kind === 'datetime' ? timeIn(zoneOf(to) ?? zoneOf(type), false) : to;
    return cast(value.sql, withNull(known, type.nullable));
  }
  if (to.kind === 'string') return cast(toStringSql(value, statement), scalar('string', type.nullable));
  if (to.kind === 'json') return cast(sql`to_jsonb(${value.sql})`, scalar('json', type.nullable));
  const constant = readConstant(value, to, statement);
  if (constant?.type.kind === to.kind) return cast(constant.sql, withNull(to, false));
  if (type.kind === 'string' || type.kind === 'json')
    return cast(
      castStringTo(type.kind === 'json' ? toStringSql(value, statement) : value.sql, to, statement),
      withNull(to),
    );
  const fragment = castScalar(value, to, statement);
  if (fragment === undefined)
    throw statement.error(`${nameOfType(type)} cannot be converted to ${nameOfType(to)}.`, node);
  return cast(fragment.sql, withNull(to, type.nullable || fragment.partial));
}

function castScalar(
  value: Value,
  to: Type,
  statement: Statement,
): { readonly sql: Sql; readonly partial: boolean } | undefined {
  const { type, sql: fragment } = value;
  const whole = (made: Sql, partial = false): { sql: Sql; partial: boolean } => ({ sql: made, partial });
  if (to.kind === 'integer' && (type.kind === 'float' || type.kind === 'decimal'))
    // Infinity, NaN and out-of-range numbers have no integer value.
    return whole(
      sql`(case when (${fragment})::float8 between -9.2e18 and 9.2e18 then trunc((${fragment})::float8)::int8 end)`,
      true,
    );
  if (isNumber(to) && isNumber(type)) return whole(sql`(${fragment})::${postgresType(to)}`);
  if (isNumber(to) && type.kind === 'boolean') return whole(sql`((${fragment})::int4)::${postgresType(to)}`);
  if (to.kind === 'boolean' && isNumber(type)) return whole(sql`(${fragment} <> 0)`);
  if (isNumber(to) && type.kind === 'datetime')
    return whole(sql`(floor(extract(epoch from ${fragment})))::${postgresType(to)}`);
  if (isNumber(to) && type.kind === 'date')
    return whole(sql`((${fragment} - '1970-01-01'::date))::${postgresType(to)}`);
  if (to.kind === 'datetime' && isNumber(type)) return whole(sql`to_timestamp((${fragment})::float8)`);
  if (to.kind === 'date' && isNumber(type)) return whole(sql`('1970-01-01'::date + (${fragment})::int4)`);
  if (to.kind === 'date' && type.kind === 'datetime') return whole(coerce(value, to, statement));
  if (to.kind === 'datetime' && type.kind === 'date') return whole(coerce(value, to, statement));
  return undefined;
}

function castComposite(value: Value, to: Type, node: Node, statement: Statement): Value {
  const { type } = value;
  if (to.kind === 'string' || to.kind === 'json')
    return castOf(
      value,
      to,
      withNull(to, type.nullable),
      to.kind === 'json' ? value.sql : sql`(${value.sql})::text`,
    );
  const sameShape = type.kind === to.kind;
  if (!sameShape)
    throw statement.error(`${nameOfType(type)} cannot be converted to ${nameOfType(to)}.`, node);
  return castOf(value, to, to, value.sql);
}
