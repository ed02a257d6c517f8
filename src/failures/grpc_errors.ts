import { status } from '@grpc/grpc-js';
import { isGrpcServiceError, ServiceError } from '@temporalio/client';
import { NamespaceNotFoundError } from '@temporalio/common';

/**
 * Whether Temporal rejected the request itself, such as one with a field that is too long. Sending it again is useless;
 * a caller that works through a list continues with the next item.
 */
export const isInvalidRequest = (error: unknown): boolean =>
  hasCode(error, status.INVALID_ARGUMENT, status.OUT_OF_RANGE);

/** Whether Temporal could not serve a request that will succeed once it is back: a timeout, a rate limit, no connection. */
export const isTemporalUnavailable = (error: unknown): boolean =>
  hasCode(error, status.DEADLINE_EXCEEDED, status.RESOURCE_EXHAUSTED, status.UNAVAILABLE);

/** Whether the caller may not use a method, or a managed service does not have it. */
export const isForbidden = (error: unknown): boolean =>
  hasCode(error, status.PERMISSION_DENIED, status.UNIMPLEMENTED);

/** Why Temporal rejects every request of this process, until the operator changes something: with the message for users. */
export const rejectionMessages = {
  TemporalPermissionDenied:
    "Temporal denies exportd access to its namespace. Check TEMPORAL_NAMESPACE, and the permissions of exportd's API key or certificate.",
  TemporalUnauthenticated:
    "Temporal rejects exportd's credentials. Check TEMPORAL_API_KEY, or TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH.",
  TemporalNamespaceNotFound:
    'Temporal does not have the namespace of exportd. Check TEMPORAL_NAMESPACE and TEMPORAL_ADDRESS, or create the namespace.',
} as const;
type Rejection = keyof typeof rejectionMessages;

/** Its code, NOT_FOUND, is that of a workflow too. */
const namespaceNotFound = /^Namespace .* is not found/;

/** Why Temporal rejects every request, if that is the error; undefined otherwise. */
export function rejectionIn(error: unknown): Rejection | undefined {
  if (error instanceof NamespaceNotFoundError) return 'TemporalNamespaceNotFound';
  if (hasCode(error, status.PERMISSION_DENIED)) return 'TemporalPermissionDenied';
  if (hasCode(error, status.UNAUTHENTICATED)) return 'TemporalUnauthenticated';
  const cause = grpcCause(error);
  return isGrpcServiceError(cause) && namespaceNotFound.test(cause.details)
    ? 'TemporalNamespaceNotFound'
    : undefined;
}

/** Whether an error came from Temporal's client, whatever its code. */
export const isTemporalError = (error: unknown): boolean =>
  error instanceof ServiceError || error instanceof NamespaceNotFoundError || isGrpcServiceError(error);

const grpcCause = (error: unknown): unknown => (error instanceof ServiceError ? error.cause : error);

function hasCode(error: unknown, ...codes: readonly status[]): boolean {
  const cause = grpcCause(error);
  return isGrpcServiceError(cause) && codes.includes(cause.code);
}
