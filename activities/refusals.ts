import { isGrpcServiceError, ServiceError } from '@temporalio/client';

/** Status codes of gRPC with which a server says that the request itself will not do, now or later. */
const refusals: ReadonlySet<number> = new Set([3 /* INVALID_ARGUMENT */, 11 /* OUT_OF_RANGE */]);

/**
 * Whether Temporal answered that it does not accept a request, such as one with a member that is too long. Whoever
 * works through a list goes on with the next: the same request would be refused for ever.
 */
export function isRefusal(error: unknown): boolean {
  const answer = error instanceof ServiceError ? error.cause : error;
  return isGrpcServiceError(answer) && refusals.has(answer.code);
}
