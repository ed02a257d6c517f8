import { DestinationError } from '../destination.ts';
import type { S3Config } from './config.ts';

/** Errors that concern whoever owns the credentials of a request. */
const credentialErrors: ReadonlySet<string> = new Set([
  'InvalidAccessKeyId',
  'SignatureDoesNotMatch',
  'InvalidToken',
  'CredentialsProviderError',
]);

/** Errors of STS that concern the credentials which assume a role, and not the role. */
export const isCredentialErrorOfSts = (name: string): boolean =>
  /^(ExpiredToken|InvalidClientTokenId|UnrecognizedClient|SignatureDoesNotMatch|MissingAuthenticationToken|CredentialsProviderError)/.test(
    name,
  );

/**
 * Names the operator as the owner of an error that a tenant cannot fix: the clock and the credentials of exportd's machine,
 * its session tokens, and TLS to AWS itself.
 */
export function withOwner(
  failure: DestinationError,
  { aws_access_key_id, endpoint_url }: Pick<S3Config, 'aws_access_key_id' | 'endpoint_url'>,
): DestinationError {
  const { type, message } = failure;
  if (failure.owner !== 'tenant') return failure;
  if (type === 'RequestTimeTooSkewed') return ofOperator(type, message);
  // Configs have no session tokens: the machine has one, or exportd got it for a role.
  if (type === 'ExpiredToken' || (aws_access_key_id === undefined && credentialErrors.has(type)))
    return ofOperator(
      type,
      `The AWS credentials of exportd's machine are missing, invalid or expired (${type}).`,
    );
  if (type === 'TlsError' && endpoint_url === null)
    return ofOperator(
      type,
      `${message} The server is AWS: check the certificates and the clock of exportd's machine.`,
    );
  return failure;
}

/** An error that is retried when the operator may have fixed it, and never within an attempt. */
export const ofOperator = (type: string, message: string): DestinationError =>
  new DestinationError(type, message, { transient: false, owner: 'operator' });
