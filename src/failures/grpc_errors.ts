import { isGrpcServiceError, ServiceError } from '@temporalio/client';

/** gRPC status codes of a request that can never succeed. */
const invalidRequestCodes: ReadonlySet<number> = new Set([3 /* INVALID_ARGUMENT */, 11 /* OUT_OF_RANGE */]);

/** gRPC status codes of errors that pass: a timeout, a rate limit, no connection. */
const transientCodes: ReadonlySet<number> = new Set([
  4 /* DEADLINE_EXCEEDED */, 8 /* RESOURCE_EXHAUSTED */, 14 /* UNAVAILABLE */,
]);

/**
 * Whether Temporal rejected the request itself, such as one with a field that is too long. Sending it again is useless;
 * a caller that works through a list continues with the next item.
 */
export const isInvalidRequest = (error: unknown): boolean => hasCode(error, invalidRequestCodes);

/** Whether Temporal could not serve a request that will succeed once Temporal is back. */
export const isTemporalUnavailable = (error: unknown): boolean => hasCode(error, transientCodes);

/** Whether an error came from Temporal's client, whatever its code. */
export const isTemporalError = (error: unknown): boolean =>
  error instanceof ServiceError || isGrpcServiceError(error);

function hasCode(error: unknown, codes: ReadonlySet<number>): boolean {
  const cause = error instanceof ServiceError ? error.cause : error;
  return isGrpcServiceError(cause) && codes.has(cause.code);
}
