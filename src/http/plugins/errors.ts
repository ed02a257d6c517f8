import type { FastifyError, FastifyReply, FastifyRequest, FastifySchemaValidationError } from 'fastify';
import { hasZodFastifySchemaValidationErrors } from 'fastify-type-provider-zod';
import pg from 'pg';
import { ClientDisconnected } from '../../concurrency/client_disconnected.ts';
import { bounds } from '../../config/bounds.ts';
import { CommandRejected, type RejectionCode } from '../../domain/errors.ts';
import { isDatabaseUnavailable } from '../../journal/database.ts';
import { InvalidMapping } from '../../source/check/draft_view.ts';
import { safeMessage } from '../../source/check/report.ts';
import { InvalidRelation } from '../../source/postgres_source.ts';
import { RowTooWide } from '../../source/copy_out.ts';
import { RelationNotFound } from '../../source/relations.ts';
import { UnsupportedSelection } from '../../source/row_query/selected_rows.ts';
import { SelectionRejected } from '../../source/selection_rejected.ts';
import { isErrorOfSource, SourceBusy, SourceIsStandby } from '../../source/source_connection.ts';
import { ApiError, invalid, notFound, retryAfter } from '../api_error.ts';
import { attrAsSent } from '../sent_names.ts';

/** Formats the path of a field as `attr`, for example `destination__config__prefix`. */
export const attrOf = (path: readonly (string | number)[]): string | null =>
  path.length === 0 ? null : path.join('__');

/** How many names a message quotes, and how many characters of each. */
const [maxQuoted, maxQuotedLength] = [10, 100];

/** Names that a request has sent, in a message. */
const quoted = (names: readonly string[]): string =>
  names
    .slice(0, maxQuoted)
    .map((name) => `'${name.length > maxQuotedLength ? `${name.slice(0, maxQuotedLength)}…` : name}'`)
    .join(', ') + (names.length > maxQuoted ? ` and ${names.length - maxQuoted} more` : '');

const strings = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : []);

/** The value at a path of the body, or undefined. */
const valueAt = (body: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>(
    (value, key) =>
      typeof value === 'object' && value !== null && Object.hasOwn(value, key)
        ? (value as Record<string, unknown>)[key]
        : undefined,
    body,
  );

/** The message that a schema defines itself; zod's default messages start with these words. */
const customMessage = ({ message }: FastifySchemaValidationError): string | undefined =>
  /^(Invalid|Too small:|Too big:)( |$)/.test(message ?? '') ? undefined : message;

/** JSON's names for zod's types. */
const typeNames: Readonly<Record<string, string>> = { int: 'whole number', record: 'object' };

function describeType(expected: string): string {
  const type = typeNames[expected] ?? expected;
  return /^[aeio]/.test(type) ? `an ${type}` : `a ${type}`;
}

/** Describes the violated limit of a number, or of the length of a string or array. */
function boundMessage({ params }: FastifySchemaValidationError): string {
  const { origin, minimum, maximum, inclusive } = params;
  const bound = String(minimum ?? maximum);
  const isMinimum = minimum !== undefined;
  const unit = origin === 'string' ? 'character' : origin === 'array' ? 'item' : undefined;
  if (unit !== undefined)
    return `Must have at ${isMinimum ? 'least' : 'most'} ${bound} ${unit}${bound === '1' ? '' : 's'}.`;
  if (inclusive === false) return `Must be ${isMinimum ? 'greater' : 'less'} than ${bound}.`;
  return `Must be at ${isMinimum ? 'least' : 'most'} ${bound}.`;
}

/**
 * The 400 response for a request that does not match its schema. It describes the first issue and never repeats a
 * value, which may be a secret.
 */
export function invalidRequest(issues: readonly FastifySchemaValidationError[], body: unknown): ApiError {
  const [issue] = issues;
  const path = (issue?.instancePath ?? '').split('/').filter((part) => part !== '');
  const reject = (code: string, detail: string, attr: string | null = attrOf(path)) =>
    new ApiError(400, code, detail, { attr });
  if (!issue) return reject('invalid_input', 'The request is invalid.');
  // Keywords are the codes of zod's issues.
  switch (issue.keyword) {
    case 'unrecognized_keys': {
      const unknown = strings(issue.params.keys).sort();
      return reject(
        'invalid_input',
        `Unknown field${unknown.length === 1 ? '' : 's'} ${quoted(unknown)}.`,
        attrOf([...path, unknown[0] ?? '']),
      );
    }
    case 'invalid_type': {
      const value = valueAt(body, path);
      const expected = String(issue.params.expected);
      if (path.length === 0) return reject('invalid_input', `The body must be ${describeType(expected)}.`);
      if (value === undefined) return reject('required', 'This field is required.');
      if (value === null) return reject('invalid_input', 'This field may not be null.');
      return reject('invalid_input', customMessage(issue) ?? `This field must be ${describeType(expected)}.`);
    }
    case 'invalid_value':
      return reject(
        'invalid_input',
        customMessage(issue) ?? `Must be one of: ${quoted(strings(issue.params.values))}.`,
      );
    case 'too_small':
    case 'too_big':
      return reject('invalid_input', customMessage(issue) ?? boundMessage(issue));
    case 'invalid_union': {
      const value = valueAt(body, path);
      if (value === undefined && path.length > 0) return reject('required', 'This field is required.');
      const options = strings(issue.params.options);
      const message = options.length > 0 ? `Must be one of: ${quoted(options)}.` : 'This field is invalid.';
      return reject('invalid_input', customMessage(issue) ?? message);
    }
    default:
      return reject('invalid_input', issue.message ?? 'This field is invalid.');
  }
}

const statusOfRejection: Record<RejectionCode, number> = {
  invalid_input: 400,
  required: 400,
  not_found: 404,
  conflict: 409,
  too_many_concurrent_backfills: 429,
  internal_error: 500,
};

/** The error response to a rejected command. Unknown codes become 400. */
export function rejectionError(rejection: {
  readonly code?: string | undefined;
  readonly detail?: string | undefined;
  readonly attr?: string | null | undefined;
}): ApiError {
  const code = rejection.code ?? 'invalid_input';
  const status = code in statusOfRejection ? statusOfRejection[code as RejectionCode] : 400;
  return new ApiError(status, code, rejection.detail ?? 'The command was rejected.', {
    attr: rejection.attr ?? null,
    // Limits of commands are those of work that takes minutes.
    ...(status === 429 ? retryAfter(60) : {}),
  });
}

const retryLater = retryAfter(5);

/** Maps the errors that Fastify itself throws. */
function frameworkError(error: FastifyError, bodyLimit: number | undefined): ApiError | undefined {
  switch (error.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new ApiError(
        413,
        'payload_too_large',
        `The body exceeds the limit of ${bodyLimit} bytes${bodyLimit === bounds.sessionBody.max ? '' : ' (EXPORTD_HTTP_MAX_BODY_SIZE)'}.`,
      );
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new ApiError(
        415,
        'unsupported_media_type',
        'Unsupported content type. Send the body as application/json.',
      );
    case 'FST_ERR_BAD_URL':
    case 'FST_ERR_PARAM_LENGTH':
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return notFound();
    default:
      break;
  }
  const status = error.statusCode ?? 500;
  return status >= 400 && status < 500 ? new ApiError(status, 'parse_error', error.message) : undefined;
}

const toApiError = (
  error: FastifyError,
  request: FastifyRequest,
  others: readonly ErrorOf[],
): ApiError | undefined => {
  if (error instanceof ApiError) return error;
  // No client receives it, but it must not be logged as an error of the server.
  if (error instanceof ClientDisconnected) return new ApiError(499, 'client_disconnected', error.message);
  if (error instanceof CommandRejected)
    return rejectionError({ code: error.code, detail: error.message, attr: error.attr });
  if (hasZodFastifySchemaValidationErrors(error))
    return error.validationContext === 'params'
      ? notFound()
      : invalidRequest(
          error.validation,
          error.validationContext === 'querystring' ? request.query : request.body,
        );
  for (const errorOf of others) {
    const known = errorOf(error, request);
    if (known) return known;
  }
  const isUnreadable =
    error instanceof RelationNotFound || (isErrorOfSource(error) && isDatabaseUnavailable(error));
  const ofSource = isUnreadable ? sourceError(error) : undefined;
  if (ofSource) return ofSource;
  if (isDatabaseUnavailable(error))
    return new ApiError(
      503,
      'unavailable',
      'The control database is not available. Retry in a few seconds.',
      retryLater,
    );
  return frameworkError(error, request.routeOptions.bodyLimit);
};

/** Sends an error response. Unexpected errors are logged, and their messages are not sent. */
type SendError = (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => FastifyReply;

/** Maps the errors of one capability; undefined for any other. */
export type ErrorOf = (error: Error, request: FastifyRequest) => ApiError | undefined;

/** Creates the handler of errors. `others` map those that only their capability knows. */
export const createErrorHandler =
  (others: readonly ErrorOf[]): SendError =>
  (error, request, reply) => {
    const known = toApiError(error, request, others);
    if (!known) request.log.error({ err: error }, 'Request failed.');
    const apiError = known ?? new ApiError(500, 'error', 'A server error occurred.');
    return reply
      .code(apiError.statusCode)
      .headers(apiError.headers)
      .type('application/json')
      .send({ ...apiError.body(), attr: attrAsSent(request.body, apiError.attr) });
  };

const lockNotAvailable = '55P03';
/** Names, types and rights that do not fit, and values of another type. */
const refusedStatement = /^(42|22)/;

/** The error response for an error of reading the source; undefined when the source is not at fault. */
export function sourceError(error: unknown): ApiError | undefined {
  if (error instanceof RelationNotFound || error instanceof SourceBusy || error instanceof SourceIsStandby)
    return unreachable(error.message);
  if (error instanceof pg.DatabaseError && error.code === lockNotAvailable)
    return unreachable('A relation of the source is locked by another session. Retry later.');
  if (isDatabaseUnavailable(error)) return unreachable('The source database cannot be reached. Retry later.');
  if (error instanceof InvalidRelation) return new ApiError(503, 'source_rejected', error.message);
  if (
    error instanceof SelectionRejected ||
    error instanceof UnsupportedSelection ||
    error instanceof InvalidMapping
  )
    return invalid(error.message, null);
  if (error instanceof RowTooWide)
    return invalid(`${error.message} Select fewer or shorter columns with dialect_query.`, null);
  if (!(error instanceof pg.DatabaseError) || !refusedStatement.test(error.code ?? '')) return undefined;
  return new ApiError(
    503,
    'source_rejected',
    `PostgreSQL refused to read the source: ${safeMessage(error)} (SQLSTATE ${error.code}). "exportd source check" prints how to fix the relation.`,
  );
}

const unreachable = (detail: string): ApiError => new ApiError(503, 'source_unreachable', detail, retryLater);
