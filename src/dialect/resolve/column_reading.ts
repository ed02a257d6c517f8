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
  if (postgresType === 'json') return readableJson(column);
  if (postgresType === 'timestamp without time zone') return sql`(${column} at time zone 'UTC')`;
  // Through text, so that 0.1 stays 0.1.
  if (postgresType === 'real') return sql`${column}::text::float8`;
  if (typeOfColumn(postgresType, true).kind === 'array') return sql`to_jsonb(${column})`;
  return sql`${column}::text`;
}

/** Escapes that a `json` column may contain but PostgreSQL cannot decode: U+0000 and unpaired surrogates. */
const unreadable = String.raw`\\u(0000|[dD][89a-fA-F])`;
const highHalf = String.raw`\\u[dD][89abAB][0-9a-fA-F]{2}`;
const lowHalf = String.raw`\\u[dD][c-fC-F][0-9a-fA-F]{2}`;
const unreadableEscape = String.raw`\\u0000|${highHalf}(?!${lowHalf})|(?<!${highHalf})${lowHalf}`;

/**
 * Replaces these escapes in a `json` value by U+FFFD. Escaped backslashes are rewritten first, so that every remaining
 * backslash starts an escape.
 */
function readableJson(column: Sql): Sql {
  const { text } = renderSql(column);
  return rawSql(`(case when ${text}::text ~ '${unreadable}'
  then regexp_replace(replace(${text}::text, '\\\\', '\\u005c'), '${unreadableEscape}', '\\\\ufffd', 'g')::json
  else ${text} end)`);
}
