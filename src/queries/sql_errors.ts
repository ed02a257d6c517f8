import pg from 'pg';
import { QueryError } from './query_errors.ts';

/**
 * Messages for errors that the values of a query cause. PostgreSQL's own messages are never returned: they quote
 * values, and a value may be evaluated before the filter that would have excluded its row.
 */
const sentences: Readonly<Record<string, string>> = {
  '22003': 'A number is out of range for its type.',
  '22007': 'A string could not be parsed as a date or time.',
  '22008': 'A date or time is out of range.',
  '22009': 'Unknown time zone.',
  '22023': 'An argument has a value that its function does not accept.',
  '22P02': 'A string could not be converted to the required type.',
  '2201B':
    'A regular expression is invalid. One that is not a literal cannot use escapes such as \\d, classes such as [:alpha:], or flags other than (?i).',
  '2201E': 'The logarithm of zero or of a negative number is undefined.',
  '2201F': 'A power or a root has no real result.',
  '22012': 'Division by zero.',
  '22013': 'A window frame bound is null or negative.',
  '22016': 'The index in nth_value() must be an integer of at least 1.',
  '22025': 'A LIKE pattern ends with a backslash.',
  '22004': 'A required key or value is null.',
  '22021': 'A string contains invalid UTF-8.',
  '22P05': 'A string contains a character that the database cannot store.',
  '0A000':
    'The database cannot compute this: a FULL JOIN needs an equality between both sides, and few functions accept an infinite time.',
  '21000': 'A subquery used as a value returned more than one row.',
  '42P19': 'A recursive query does not have the required form.',
  '55P03': 'A table of this query is locked by another session. Run the query again later.',
  '53400': 'The query exceeds the limit on temporary disk space (EXPORTD_QUERY_TEMP_FILE_LIMIT).',
  '53200': 'The database is out of memory for this query.',
  '54000':
    'A value is too large. Aggregates that gather values, such as groupArray and topK, take 128 MiB: filter the rows, or use GROUP BY.',
  '54001': 'The query is nested too deeply.',
};

const classes: Readonly<Record<string, string>> = {
  '22': 'A value could not be computed.',
  '54': 'The query is too large or complex for the database.',
};

/** PostgreSQL parses formats of to_char() at run time and reports an invalid one as a syntax error. */
const formatErrorMessage = ({ code, file }: pg.DatabaseError): string | undefined =>
  code === '42601' && file === 'formatting.c' ? 'A number or time format is invalid.' : undefined;

/** The error to return for a PostgreSQL error that the query itself caused; undefined for all others. */
export function toQueryError(error: unknown): QueryError | undefined {
  if (!(error instanceof pg.DatabaseError)) return undefined;
  const state = error.code ?? '';
  const sentence = sentences[state] ?? classes[state.slice(0, 2)] ?? formatErrorMessage(error);
  return sentence === undefined
    ? undefined
    : new QueryError('query_failed', `${sentence} (SQLSTATE ${state})`);
}
