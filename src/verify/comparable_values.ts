import { digestSql } from './value_digest.ts';

/** A value in SQL as it is compared. */

/** What stands for a text of any length. */
export const text = (expression: string): string => digestSql(plain(expression));

/** What stands for JSON as it was stored, without the line breaks that lay it out, which `jsonb` never has. */
export const json = (expression: string, type: string | undefined): string =>
  digestSql(
    type === 'jsonb' ? plain(expression) : `replace(replace(${plain(expression)}, E'\\n', ''), E'\\r', '')`,
  );

/** A value of a short text. */
export const plain = (expression: string): string => `(${expression})::text`;

/** A time as files have it; what has no such text (infinity, years before 1 or after 9999) as PostgreSQL prints it. */
export const time = (expression: string): string =>
  `case when ${expression} >= '0001-01-01 00:00:00+00' and ${expression} < '10000-01-01 00:00:00+00'
     then to_char(${expression} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') else (${expression})::text end`;

/** A date as files have it; see `time`. */
export const date = (expression: string): string =>
  `case when ${expression} >= '0001-01-01' and ${expression} < '10000-01-01'
     then to_char(${expression}, 'YYYY-MM-DD') else (${expression})::text end`;
