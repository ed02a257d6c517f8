import { postgresType } from '../../dialect/compile/json_values.ts';
import type { Value } from '../../dialect/resolve/value.ts';
import { sql, type Sql } from '../../dialect/sql.ts';
import type { Kind } from '../../dialect/types.ts';
import type { ColumnType } from '../columns.ts';

/** What files have for a type of the dialect. Of decimals every digit counts, so they are text. */
const columnTypes: Readonly<Record<Kind, ColumnType>> = {
  string: 'text',
  integer: 'bigint',
  float: 'double',
  decimal: 'text',
  boolean: 'boolean',
  date: 'date',
  datetime: 'timestamp',
  uuid: 'uuid',
  interval: 'text',
  json: 'json',
  null: 'text',
  array: 'json',
  tuple: 'json',
  map: 'json',
};

/**
 * A value as it leaves the source, of the type that an encoder expects.
 * @param plain the column that it is, as it is: JSON goes out untouched
 */
export function exportedValue(
  { sql: piece, type }: Value,
  plain: Sql | undefined,
): { readonly type: ColumnType; readonly sql: Sql } {
  const exported = columnTypes[type.kind];
  if (exported === 'json' && plain !== undefined) return { type: exported, sql: plain };
  return {
    type: exported,
    sql: exported === 'text' ? sql`(${piece})::text` : sql`(${piece})::${postgresType(type)}`,
  };
}
