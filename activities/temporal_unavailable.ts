import { isGrpcServiceError, ServiceError } from '@temporalio/client';

/** Status codes of gRPC that pass: no answer in time, too many requests for now, no connection. */
const passing: ReadonlySet<number> = new Set([
  4 /* DEADLINE_EXCEEDED */, 8 /* RESOURCE_EXHAUSTED */, 14 /* UNAVAILABLE */,
]);

/** Whether Temporal did not take a request of exportd's own client and the same request will do once it is back. */
export function isTemporalUnavailable(error: unknown): boolean {
  const answer = error instanceof ServiceError ? error.cause : error;
  return isGrpcServiceError(answer) && passing.has(answer.code);
}
