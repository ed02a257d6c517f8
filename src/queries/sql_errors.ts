import pg from 'pg';
import { QueryError } from './query_errors.ts';

/**
 * Sentences for what PostgreSQL refuses because of a query's values. Its own messages are never shown: they quote
 * values, and a value may be evaluated before the filter that would have left its row out.
 */
const sentences: Readonly<Record<string, string>> = {
  '22003': 'A number is out of the range of its type.',
  '22007': 'A text could not be read as a date or time.',
  '22008': 'A date or time is out of range.',
  '22009': 'A time zone is not known.',
  '22023': 'A function does not accept the value of an argument.',
  '22P02': 'A text could not be converted to the type that it is used as.',
  '2201B': 'A regular expression is not valid.',
  '2201E': 'The logarithm of zero or of a negative number is needed.',
  '2201F': 'A power or a root has no real number as its result.',
  '22012': 'A division by zero.',
  '22013': 'A bound of the frame of a window is null or negative.',
  '22016': 'The place in nth_value() is not a whole number from 1.',
  '22025': 'A pattern of LIKE ends in a backslash.',
  '22004': 'A key or a value that is needed is null.',
  '22021': 'A text holds bytes that are no UTF-8.',
  '22P05': 'A text holds a character that the database cannot store.',
  '0A000':
    'The database cannot compute this: a FULL JOIN needs an equality of both sides, and few functions take an infinite time.',
  '21000': 'A subquery that is used as a value gives more than one row.',
  '42P19': 'A recursive query does not have the form that it needs.',
  '53400': 'The query needs more temporary space than it may have.',
  '53200': 'The query needs more memory than there is.',
  '54001': 'The query is nested too deeply.',
};

const classes: Readonly<Record<string, string>> = {
  '22': 'A value of a row could not be computed.',
  '54': 'The query is larger than the database can handle.',
};

/** The formats of to_char() are read while a query runs, and PostgreSQL calls what is wrong in them a fault of syntax. */
const formatFault = ({ code, file }: pg.DatabaseError): string | undefined =>
  code === '42601' && file === 'formatting.c' ? 'A format of numbers or times is not valid.' : undefined;

/** What a caller is told of an error of PostgreSQL that the query itself brought about; undefined for all others. */
export function toQueryError(error: unknown): QueryError | undefined {
  if (!(error instanceof pg.DatabaseError)) return undefined;
  const state = error.code ?? '';
  const sentence = sentences[state] ?? classes[state.slice(0, 2)] ?? formatFault(error);
  return sentence === undefined
    ? undefined
    : new QueryError('query_failed', `${sentence} (SQLSTATE ${state})`);
}
