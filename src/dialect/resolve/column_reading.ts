import { readableJson } from '../../sql/json_property.ts';
import { typeOfColumn } from '../schema.ts';
import { rawSql, sql, type Sql } from '../sql.ts';

/** Types that are read as they are stored, so that indexes are used. */
const plainTypes: ReadonlySet<string> = new Set([
  ...['text', 'character varying', 'smallint', 'integer', 'bigint', 'double precision', 'numeric', 'boolean'],
  ...['date', 'timestamp with time zone', 'uuid', 'interval', 'jsonb'],
]);

/** How a column of PostgreSQL becomes a value of the dialect's type; null where it is one already. */
export function readColumn(column: Sql, postgresType: string): Sql | null {
  if (plainTypes.has(postgresType)) return null;
  // What PostgreSQL cannot read of it is replaced, so that no row makes a statement fail.
  if (postgresType === 'json') return rawSql(readableJson(column.key));
  if (postgresType === 'timestamp without time zone') return sql`(${column} at time zone 'UTC')`;
  // By its text, so that 0.1 is 0.1.
  if (postgresType === 'real') return sql`${column}::text::float8`;
  if (typeOfColumn(postgresType, true).kind === 'array') return sql`to_jsonb(${column})`;
  return sql`${column}::text`;
}
