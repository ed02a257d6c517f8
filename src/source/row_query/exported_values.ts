import { postgresType } from '../../dialect/compile/expressions/coerce.ts';
import type { Value } from '../../dialect/resolve/value.ts';
import { sql, type Sql } from '../../dialect/sql.ts';
import type { Kind } from '../../dialect/types.ts';
import type { ColumnType } from '../columns.ts';

/** Column types of files by the types of the dialect. Decimals are exported as text to keep every digit. */
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
 * An exported value, cast to the type that an encoder expects.
 * @param whole the column, if it is selected unchanged; then JSON is not cast
 */
export function exportedValue(
  { sql: fragment, type }: Value,
  whole: Sql | undefined,
): { readonly type: ColumnType; readonly sql: Sql } {
  const exported = columnTypes[type.kind];
  if (exported === 'json' && whole !== undefined) return { type: exported, sql: whole };
  return {
    type: exported,
    sql: exported === 'text' ? sql`(${fragment})::text` : sql`(${fragment})::${postgresType(type)}`,
  };
}
