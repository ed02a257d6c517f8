import { rawSql, sql, type Sql } from '../sql.ts';
import type { Type } from '../types.ts';

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
