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
    super('The query could not start in time: the database is not responding. Try again in a moment.');
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

/** The client closed the connection before its query ended. Also the abort reason of the query's signal. */
export class ClientDisconnected extends Error {
  override readonly name = 'ClientDisconnected';

  constructor() {
    super('The client that waited for the query disconnected.');
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
