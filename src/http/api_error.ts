/** The body of every error response. */
interface ErrorBody {
  readonly type: string;
  readonly code: string;
  readonly detail: string;
  /** Path of the invalid field, joined by `__`, or null. */
  readonly attr: string | null;
}

const typesByStatus: Readonly<Record<number, string>> = {
  400: 'validation_error',
  401: 'authentication_error',
  403: 'permission',
  404: 'not_found',
  405: 'method_not_allowed',
  409: 'conflict',
  410: 'gone',
  413: 'payload_too_large',
  415: 'unsupported_media_type',
  429: 'throttled',
  500: 'server_error',
  503: 'unavailable',
};

/** An error response; the message is its `detail`. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly statusCode: number;
  readonly code: string;
  readonly attr: string | null;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    statusCode: number,
    code: string,
    detail: string,
    options: { readonly attr?: string | null; readonly headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(detail);
    this.statusCode = statusCode;
    this.code = code;
    this.attr = options.attr ?? null;
    this.headers = options.headers ?? {};
  }

  /** The body of the response. */
  body(): ErrorBody {
    return {
      type: typesByStatus[this.statusCode] ?? 'error',
      code: this.code,
      detail: this.message,
      attr: this.attr,
    };
  }
}

/** Options of an error that tells when to retry. */
export const retryAfter = (seconds: number) => ({ headers: { 'retry-after': String(seconds) } });

/** The response when Temporal cannot be reached. `consequence` says what was not done. */
export const temporalUnreachable = (consequence: string, retryAfterSeconds = 5): ApiError =>
  new ApiError(
    503,
    'temporal_unreachable',
    `Temporal cannot be reached. ${consequence} Retry in a few seconds.`,
    retryAfter(retryAfterSeconds),
  );

/** Also used for what the key may not see. */
export const notFound = (): ApiError => new ApiError(404, 'not_found', 'Not found.');

/** An invalid body or parameter; `attr` names it. */
export const invalid = (detail: string, attr: string | null): ApiError =>
  new ApiError(400, 'invalid_input', detail, { attr });
