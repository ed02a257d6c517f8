import pg from 'pg';
import { DialectError } from '@exportd/dialect/query_text';
import { FilterError } from '../filters/operand.ts';

/** The position of an error in a query's text. Lines and columns start at 1. */
export interface QueryPosition {
  readonly line: number;
  readonly column: number;
  /** UTF-16 code units from the start of the text. */
  readonly offset: number;
  readonly length: number;
}

/** The position of an error of the dialect. */
export const positionOf = ({ line, column, offset, length }: QueryPosition): QueryPosition => ({
  line,
  column,
  offset,
  length,
});

/** A query that fails because of its request or its data. The message is shown to the user. */
export class QueryError extends Error {
  override readonly name = 'QueryError';
  /** Machine-readable code, such as `invalid_input` or `dialect_error`. */
  readonly code: string;
  /** Path of the invalid field in the request, joined by `__`, or null. */
  readonly attr: string | null;
  readonly position: QueryPosition | null;

  constructor(
    code: string,
    message: string,
    more: { readonly attr?: string | null; readonly position?: QueryPosition | null } = {},
  ) {
    super(message);
    this.code = code;
    this.attr = more.attr ?? null;
    this.position = more.position ?? null;
  }
}

/** Turns a FilterError of `read` into a QueryError. @throws QueryError */
export function asQueryError<Result>(read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof FilterError)) throw error;
    const { code, message, attr, cause } = error;
    throw new QueryError(code, message, {
      attr,
      position: cause instanceof DialectError ? positionOf(cause) : null,
    });
  }
}

/** The query was cancelled. Also the abort reason of its signal. */
export class QueryCancelled extends Error {
  override readonly name = 'QueryCancelled';

  constructor() {
    super('The query was cancelled.');
  }
}

/** The process that ran the query is shutting down. The client can retry. */
export class QueryInterrupted extends Error {
  override readonly name = 'QueryInterrupted';

  constructor() {
    super('The process that ran the query is shutting down. Try again in a moment.');
  }
}

/** No connection to the source was available in time. */
export class QueryNotStarted extends Error {
  override readonly name = 'QueryNotStarted';

  constructor() {
    super('The query could not start in time: the source is not responding. Try again in a moment.');
  }
}

/** Whose slots are in use: those of the API key, of the project, or all of the process. */
export type BusyScope = 'key' | 'project' | 'process';

const whyBusy: Readonly<Record<BusyScope, (slots: number) => string>> = {
  key: (slots) => `Queries of this API key use all of its ${slots} slots (EXPORTD_QUERY_KEY_SLOTS)`,
  project: (slots) => `Queries of this project use all of its ${slots} slots (EXPORTD_QUERY_PROJECT_SLOTS)`,
  process: (slots) =>
    `Queries of several projects use all ${slots} slots of the server (EXPORTD_QUERY_SLOTS)`,
};

/** The code of a query that got no slot. */
export const slotsBusyCode = 'slots_busy';

/** A query got no slot: its queue is full, or it has waited too long. */
export class QuerySlotsBusy extends Error {
  override readonly name = 'QuerySlotsBusy';
  readonly scope: BusyScope;
  /** When a slot may be free. */
  readonly retryAfterSeconds: number;

  constructor(scope: BusyScope, slots: number, retryAfterSeconds: number) {
    super(`${whyBusy[scope](slots)}, and others wait. Retry in ${retryAfterSeconds} seconds.`);
    this.scope = scope;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** Too many background queries of the project have not ended. */
export class BackgroundQueueFull extends Error {
  override readonly name = 'BackgroundQueueFull';
  readonly retryAfterSeconds: number;

  constructor(limit: number, retryAfterSeconds: number) {
    super(
      `The project has ${limit} background queries that have not ended (EXPORTD_QUERY_PROJECT_QUEUE_SIZE). Retry in ${retryAfterSeconds} seconds, or cancel one.`,
    );
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** The code of a query whose client disconnected. */
export const disconnectedCode = 'client_disconnected';

/** The client's query id is in use by another query. */
export class QueryIdInUse extends Error {
  override readonly name = 'QueryIdInUse';

  constructor() {
    super('A running query has this id. Cancel it or use another id.');
  }
}

/** Temporal is unreachable, so no background query can be started. */
export class BackgroundUnavailable extends Error {
  override readonly name = 'BackgroundUnavailable';

  constructor() {
    super('Background queries cannot be started at the moment. The query was not started. Try again later.');
  }
}

/** The output exceeds the size limit. */
export const resultTooLarge = (bytes: number): QueryError =>
  new QueryError(
    'result_too_large',
    `The result is larger than ${bytes} bytes (EXPORTD_QUERY_MAX_RESULT_SIZE). Select fewer columns or rows, or use a batch export for large amounts of data.`,
  );

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
