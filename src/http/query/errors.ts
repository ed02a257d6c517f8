import type { FastifyRequest } from 'fastify';
import {
  BackgroundQueueFull,
  BackgroundUnavailable,
  QueryError,
  QueryIdInUse,
  QueryInterrupted,
  QueryNotStarted,
  QuerySlotsBusy,
} from '../../queries/query_errors.ts';
import { QuerySchemaError } from '../../queries/parse_query.ts';
import { ApiError, retryAfter } from '../api_error.ts';
import { invalidRequest } from '../plugins/errors.ts';

const retryLater = retryAfter(5);

/** The response to an error of a query; undefined for any other. */
export function queryError(error: Error, request: FastifyRequest): ApiError | undefined {
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
  return undefined;
}
