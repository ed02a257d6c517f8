import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { hasZodFastifySchemaValidationErrors } from 'fastify-type-provider-zod';
import { CommandRejected, type RejectionCode } from '../domain/errors.ts';
import { isDatabaseUnavailable } from '../journal/database.ts';
import {
  BackgroundQueueFull,
  BackgroundUnavailable,
  ClientDisconnected,
  QueryIdInUse,
  QueryInterrupted,
  QueryError,
  QueryNotStarted,
  QuerySlotsBusy,
} from '../queries/query_errors.ts';
import { QuerySchemaError } from '../queries/registry.ts';
import { ApiError, notFound } from './api_error.ts';
import { invalidRequest } from './validation_error.ts';

/** `Retry-After` of a command that exceeds a limit. */
const retryAfterSeconds = 60;

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
    headers: status === 429 ? { 'retry-after': String(retryAfterSeconds) } : {},
  });
}

const retryAfter = (seconds: number) => ({ headers: { 'retry-after': String(seconds) } });
const retryLater = retryAfter(5);

/** Maps the errors of queries. */
function queryError(error: Error, request: FastifyRequest): ApiError | undefined {
  if (error instanceof QueryError) return new ApiError(400, error.code, error.message, { attr: error.attr });
  if (error instanceof QuerySchemaError) {
    const issues = error.error.issues.map(({ code, path, message, ...params }) => ({
      keyword: code,
      instancePath: `/${[...error.path, ...path].join('/')}`,
      schemaPath: '',
      message,
      params,
    }));
    return invalidRequest(issues, request.body);
  }
  if (error instanceof QueryIdInUse)
    return new ApiError(409, 'conflict', error.message, { attr: 'client_query_id' });
  if (error instanceof BackgroundUnavailable)
    return new ApiError(503, 'temporal_unreachable', error.message, retryLater);
  if (error instanceof QueryInterrupted || error instanceof QueryNotStarted)
    return new ApiError(503, 'unavailable', error.message, retryLater);
  if (error instanceof QuerySlotsBusy && error.scope === 'process')
    return new ApiError(503, 'unavailable', error.message, retryAfter(error.retryAfterSeconds));
  if (error instanceof QuerySlotsBusy)
    return new ApiError(
      429,
      'throttled',
      `${error.message} Queries with "refresh": "async" wait for longer.`,
      retryAfter(error.retryAfterSeconds),
    );
  if (error instanceof BackgroundQueueFull)
    return new ApiError(429, 'throttled', error.message, retryAfter(error.retryAfterSeconds));
  // Nobody receives it, but it must not be logged as an error of the server.
  if (error instanceof ClientDisconnected) return new ApiError(499, 'client_disconnected', error.message);
  return undefined;
}

/** Maps the errors that Fastify itself throws. */
function frameworkError(error: FastifyError, bodyLimit: number | undefined): ApiError | undefined {
  switch (error.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new ApiError(
        413,
        'payload_too_large',
        `The body exceeds the limit of ${bodyLimit} bytes (EXPORTD_HTTP_MAX_BODY_SIZE).`,
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

const toApiError = (error: FastifyError, request: FastifyRequest): ApiError | undefined => {
  if (error instanceof ApiError) return error;
  if (error instanceof CommandRejected)
    return rejectionError({ code: error.code, detail: error.message, attr: error.attr });
  if (hasZodFastifySchemaValidationErrors(error))
    return error.validationContext === 'params'
      ? notFound()
      : invalidRequest(
          error.validation,
          error.validationContext === 'querystring' ? request.query : request.body,
        );
  const queryFailure = queryError(error, request);
  if (queryFailure) return queryFailure;
  if (isDatabaseUnavailable(error))
    return new ApiError(
      503,
      'unavailable',
      'The control database is not available. Retry in a few seconds.',
      {
        headers: { 'retry-after': '5' },
      },
    );
  return frameworkError(error, request.routeOptions.bodyLimit);
};

/** Sends an error response. Unexpected errors are logged, and their messages are not sent. */
export function sendError(error: FastifyError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const known = toApiError(error, request);
  if (!known) request.log.error({ err: error }, 'Request failed.');
  const apiError = known ?? new ApiError(500, 'error', 'A server error occurred.');
  return reply
    .code(apiError.statusCode)
    .headers(apiError.headers)
    .type('application/json')
    .send(apiError.body());
}
