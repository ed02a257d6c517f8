import type { Node, TypeName } from '../../ast.ts';
import { nearestName } from '../../query_text.ts';
import { didYouMean } from '../../resolve/scope.ts';
import type { Statement } from '../../resolve/statement.ts';
import { derive, type Value } from '../../resolve/value.ts';
import { sql, type Sql } from '../../sql.ts';
import {
  type TimeZone,
  arrayOf,
  isComposite,
  isNumber,
  mapOf,
  nameOfType,
  type ScalarKind,
  scalarType,
  timeIn,
  tupleOf,
  type Type,
  withNull,
  zoneOf,
} from '../../types.ts';
import { instantOf, timeZoneNamed } from '../times/local_times.ts';
import { coerce, postgresType, readConstant, spacedSql, textDetails, toStringSql } from './coerce.ts';

// Casts of strings known only at run time. Unreadable values become null; a PostgreSQL cast would fail the query. Only
// CASE guarantees that the cast is not evaluated.

/** Longer fragments are computed once, in a subquery. */
const maxRepeatedLength = 200;

function computedOnce(text: Sql, cast: (text: Sql) => Sql): Sql {
  if (text.length <= maxRepeatedLength) return cast(text);
  return sql`(select ${cast(sql`given.t`)} from (select ${text} as t) as given)`;
}

/** Casts a string to another type; null if it does not parse. */
export function castStringTo(text: Sql, type: Type, statement: Statement): Sql {
  switch (type.kind) {
    case 'float':
    case 'decimal':
      return computedOnce(
        text,
        (fragment) => sql`(case when length(${fragment}) <= 200 and ${fragment} ~ ${numberPattern}
          then (${fragment})::${postgresType(type)} end)`,
      );
    case 'integer':
      return computedOnce(
        text,
        (fragment) => sql`(case when ${fragment} ~ '^[-+]?[0-9]{1,18}$' then (${fragment})::int8 end)`,
      );
    case 'boolean':
      return computedOnce(
        text,
        (fragment) => sql`(case lower(${fragment}) when 'true' then true when '1' then true
          when 'false' then false when '0' then false end)`,
      );
    case 'uuid':
      return computedOnce(
        text,
        (fragment) => sql`(case when ${fragment} ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
          then (${fragment})::uuid end)`,
      );
    case 'datetime':
      return computedOnce(text, (fragment) => timeOf(fragment, statement.zoneOf(type)));
    case 'date':
      return computedOnce(
        text,
        (fragment) =>
          sql`((${timeOf(fragment, statement.timezone)} at time zone ${statement.timezone})::date)`,
      );
    default:
      return text;
  }
}

/** The length of a number is checked separately: bounded repetition in the pattern is ten times slower. */
const numberPattern = sql`'^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]{1,2})?$'`;

const timePattern = sql`'^(?!0000)[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])([T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?(Z|[-+](0[0-9]|1[0-4])(:?[0-5][0-9])?)?)?$'`;

/** Parses a time; without an offset it is in the zone. Days beyond the end of the month are null. */
const timeOf = (text: Sql, timezone: TimeZone): Sql => sql`(case when ${text} ~ ${timePattern} then
  case when substr(${text}, 9, 2)::int4 <= extract(day from (substr(${text}, 1, 7) || '-01')::date + interval '1 month - 1 day')
  then case when substr(${text}, 11) ~ '(Z|[-+][0-9:]+)$' then (${text})::timestamptz
  else ${instantOf(sql`(${text})::timestamp`, timezone)} end end end)`;

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
  if (name === 'array') return arrayOf(types()[0] ?? scalarType('string', true));
  if (name === 'tuple') {
    const names = node.arguments.flatMap((one) => (one.kind === 'named_type' ? [one.name.text] : []));
    return tupleOf(types(), names);
  }
  if (name === 'map') return mapOf(types()[1] ?? scalarType('string', true));
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
  return scalarType(kind);
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
    return { ...cast(value.sql, withNull(known, type.nullable)), ...textDetails(value) };
  }
  if (to.kind === 'string') return cast(toStringSql(value, statement), scalarType('string', type.nullable));
  if (to.kind === 'json') return cast(sql`to_jsonb(${value.sql})`, scalarType('json', type.nullable));
  const constant = readConstant(value, to, statement);
  if (constant?.type.kind === to.kind) return cast(constant.sql, withNull(to, false));
  if (type.kind === 'string' || type.kind === 'json')
    return cast(
      castStringTo(type.kind === 'json' ? toStringSql(value, statement) : spacedSql(value), to, statement),
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
