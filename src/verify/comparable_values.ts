import { digestSql } from './value_digest.ts';

/** The digest of a string of any length, as SQL. */
export const text = (expression: string): string => digestSql(plain(expression));

/** The digest of JSON as it was stored, as SQL. Line breaks between tokens are removed; `jsonb` never has any. */
export const json = (expression: string, type: string | undefined): string =>
  digestSql(
    type === 'jsonb' ? plain(expression) : `replace(replace(${plain(expression)}, E'\\n', ''), E'\\r', '')`,
  );

/** A short value as text, as SQL. */
export const plain = (expression: string): string => `(${expression})::text`;

/**
 * A time as files contain it, as SQL. Infinities and years outside 0001 to 9999 are formatted as PostgreSQL prints
 * them.
 */
export const time = (expression: string): string =>
  `case when ${expression} >= '0001-01-01 00:00:00+00' and ${expression} < '10000-01-01 00:00:00+00'
     then to_char(${expression} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') else (${expression})::text end`;

/** A date as files contain it, as SQL; see `time`. */
export const date = (expression: string): string =>
  `case when ${expression} >= '0001-01-01' and ${expression} < '10000-01-01'
     then to_char(${expression}, 'YYYY-MM-DD') else (${expression})::text end`;
