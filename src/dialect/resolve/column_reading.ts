import { readableJson } from '../../sql/json_property.ts';
import { typeOfColumn } from '../schema.ts';
import { rawSql, renderSql, sql, type Sql } from '../sql.ts';

/** Types that are read unchanged, so that indexes are used. */
const plainTypes: ReadonlySet<string> = new Set([
  ...['text', 'character varying', 'smallint', 'integer', 'bigint', 'double precision', 'numeric', 'boolean'],
  ...['date', 'timestamp with time zone', 'uuid', 'interval', 'jsonb'],
]);

/** The SQL that converts a column to its dialect type; null if no conversion is needed. */
export function readColumn(column: Sql, postgresType: string): Sql | null {
  if (plainTypes.has(postgresType)) return null;
  // Values that jsonb cannot represent are replaced, so that no row fails the statement.
  if (postgresType === 'json') return rawSql(readableJson(renderSql(column).text));
  if (postgresType === 'timestamp without time zone') return sql`(${column} at time zone 'UTC')`;
  // Through text, so that 0.1 stays 0.1.
  if (postgresType === 'real') return sql`${column}::text::float8`;
  if (typeOfColumn(postgresType, true).kind === 'array') return sql`to_jsonb(${column})`;
  return sql`${column}::text`;
}
