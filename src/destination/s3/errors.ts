import { S3ServiceException } from '@aws-sdk/client-s3';
import { DestinationError } from '../destination.ts';

/** What a person can do about an error code of S3; none of these is cured by trying again. */
const permanentFaults: Readonly<Record<string, string>> = {
  InvalidAccessKeyId:
    'The access key was refused by the S3 server; check aws_access_key_id of the destination.',
  SignatureDoesNotMatch:
    'The S3 server refused the signature of a request; check aws_secret_access_key and region of the destination.',
  AccessDenied:
    'The S3 server denied access; check that the credentials of the destination may write to its bucket and prefix.',
  AllAccessDisabled: 'All access to this bucket has been disabled; ask the owner of the bucket.',
  AccountProblem: 'The S3 account has a problem that keeps the request from being served; ask its provider.',
  InvalidToken: 'The session token of the credentials was refused; renew the credentials of the destination.',
  ExpiredToken: 'The session token of the credentials has expired; renew the credentials of the destination.',
  NoSuchBucket: 'The bucket does not exist; check bucket_name, region and endpoint_url of the destination.',
  InvalidBucketName:
    'The S3 server does not accept the name of the bucket; check bucket_name of the destination.',
  PermanentRedirect: 'The bucket is in another region; check region and endpoint_url of the destination.',
  AuthorizationHeaderMalformed: 'The bucket is in another region; check region of the destination.',
  IllegalLocationConstraintException: 'The bucket is in another region; check region of the destination.',
  RequestTimeTooSkewed:
    'The clocks of exportd and of the S3 server differ too much; correct the clock of the machine that exportd runs on.',
  QuotaExceeded: 'The storage quota of the S3 server is used up; free room or raise the quota.',
  EntityTooLarge: 'The file is larger than the S3 server accepts.',
  CredentialsProviderError:
    'The destination has no credentials, and exportd has none of its own; set aws_access_key_id and aws_secret_access_key.',
  'KMS.NotFoundException': 'The KMS key does not exist; check kms_key_id of the destination.',
  'KMS.DisabledException': 'The KMS key is disabled; enable it or change kms_key_id of the destination.',
  'KMS.KMSInvalidStateException':
    'The KMS key cannot be used in its present state; check kms_key_id of the destination.',
};

/** Other names of the same faults: answers to HEAD have no body, so only their status is known. */
const aliases: Readonly<Record<string, string>> = {
  Forbidden: 'AccessDenied',
  '403': 'AccessDenied',
  '301': 'PermanentRedirect',
  '409': 'ConditionalRequestConflict',
  '412': 'PreconditionFailed',
  // What versitygw says of an access key it does not know.
  XAdminUserNotFound: 'InvalidAccessKeyId',
};

/** What servers say when the condition of a write does not hold: the object is there, or is another one. */
export const conditionFailed: ReadonlySet<string> = new Set([
  'PreconditionFailed',
  'ConditionalRequestConflict',
]);

/** Statuses of 400 to 499 that say "not now" rather than "never". */
const passingStatuses = new Set([408, 409, 412, 425, 429]);
/** Codes with a status of 4xx that a new upload or a later request cures. */
const passingCodes = new Set([
  'RequestTimeout',
  'RequestTimeoutException',
  'NoSuchUpload',
  'InvalidPart',
  'SlowDown',
]);

const tlsCodes = /^(CERT_|ERR_TLS_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|EPROTO$)/;

/**
 * The fault that an error of the S3 client stands for, with a message made here: what servers and the SDK write may
 * hold access keys.
 */
export function toDestinationError(error: unknown, operation: string): DestinationError {
  if (error instanceof DestinationError) return error;
  const inner = causeOf(error);
  if (inner) return inner;
  const { name, code, status } = describe(error);
  // The SDK names an error without a body and a code so.
  const type = aliases[name === 'Unknown' ? String(status) : name] ?? name;
  const known = permanentFaults[type];
  if (known !== undefined) return new DestinationError(type, known, { transient: false });
  if (code !== undefined && tlsCodes.test(code))
    return new DestinationError(
      'TlsError',
      `No trusted connection to the S3 server could be made (${code}); check endpoint_url of the destination and the server's certificate.`,
      { transient: false },
    );
  if (status === undefined)
    return new DestinationError(
      'S3Unreachable',
      `The S3 server did not answer ${operation} (${code ?? name}); check endpoint_url of the destination and whether the server is up.`,
      { transient: true },
    );
  // A web server, a gateway or a proxy: what it answers is not even an error of S3.
  if (!(error instanceof S3ServiceException))
    return new DestinationError(
      'NotAnS3Server',
      `What answered ${operation} is no S3 server (status ${status}); check endpoint_url of the destination.`,
      { transient: status < 400 || status >= 500 || passingStatuses.has(status) },
    );
  const transient =
    status >= 500 ? type !== 'NotImplemented' : passingStatuses.has(status) || passingCodes.has(type);
  return new DestinationError(type, `The S3 server answered ${operation} with ${type} (status ${status}).`, {
    transient,
  });
}

/** The fault that an error while assuming a role stands for. Says nothing of what AWS wrote but the error's name. */
export function toAssumeRoleError(error: unknown): DestinationError {
  const { name, code, status } = describe(error);
  const known = name === 'CredentialsProviderError' ? permanentFaults[name] : undefined;
  if (known !== undefined) return new DestinationError(name, known, { transient: false });
  if (status === undefined)
    return new DestinationError(
      'StsUnreachable',
      `AWS did not answer when the role of the destination was to be assumed (${code ?? name}).`,
      { transient: true },
    );
  return new DestinationError(
    'AssumeRoleFailed',
    `The role of the destination could not be assumed (${name}); check role_arn and external_id, and that the trust policy of the role names exportd's account or the owner of aws_access_key_id.`,
    { transient: status >= 500 || passingStatuses.has(status) || /^(Throttl|RequestLimit)/.test(name) },
  );
}

/** A fault that was thrown inside the client, such as the refusal of an address. */
function causeOf(error: unknown): DestinationError | undefined {
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  return cause instanceof DestinationError ? cause : undefined;
}

function describe(error: unknown): { name: string; code: string | undefined; status: number | undefined } {
  if (!(error instanceof Error)) return { name: 'UnknownError', code: undefined, status: undefined };
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  const metadata =
    '$metadata' in error ? (error.$metadata as { httpStatusCode?: number } | undefined) : undefined;
  return { name: error.name, code, status: metadata?.httpStatusCode };
}
