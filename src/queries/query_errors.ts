/** The position of an error in a query's text. Lines and columns start at 1. */
export interface QueryPosition {
  readonly line: number;
  readonly column: number;
  /** UTF-16 code units from the start of the text. */
  readonly offset: number;
  readonly length: number;
}

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
    super(
      'The query could not start in time: too many queries are running, or the database is not responding. Try again in a moment.',
    );
  }
}

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
