/** Where in a query's text something is wrong; lines and columns from one. */
export interface QueryPosition {
  readonly line: number;
  readonly column: number;
  /** UTF-16 code units from the start of the text. */
  readonly offset: number;
  readonly length: number;
}

/** A query that cannot be answered as it is asked. The message is a whole answer for the user. */
export class QueryError extends Error {
  override readonly name = 'QueryError';
  /** What is wrong in one word for programs, such as `invalid_input` or `dialect_error`. */
  readonly code: string;
  /** Path of the member of the request at fault, joined by `__`; null when none is. */
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

/** Why a query was ended before it had an answer, as the reason of its abort signal. */
export class QueryCancelled extends Error {
  override readonly name = 'QueryCancelled';

  constructor() {
    super('The query was cancelled.');
  }
}

/** The process that runs a query shuts down; whoever asked may ask again. */
export class QueryInterrupted extends Error {
  override readonly name = 'QueryInterrupted';

  constructor() {
    super('The process that ran the query shuts down; ask again in a moment.');
  }
}

/** No connection to the source was free in time. */
export class QueryNotStarted extends Error {
  override readonly name = 'QueryNotStarted';

  constructor() {
    super(
      'The query could not begin in time: too many others run, or the database does not answer. Try again in a moment.',
    );
  }
}

/** The id that a client gave is in use by another query. */
export class QueryIdInUse extends Error {
  override readonly name = 'QueryIdInUse';

  constructor() {
    super('Another query that has not ended has this id; cancel it, or use another id.');
  }
}

/** Temporal cannot be reached, so that nothing can be started in the background. */
export class BackgroundUnavailable extends Error {
  override readonly name = 'BackgroundUnavailable';

  constructor() {
    super('Queries cannot be started in the background now. Nothing was started; try again later.');
  }
}
