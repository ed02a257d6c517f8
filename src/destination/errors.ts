import { S3ServiceException } from '@aws-sdk/client-s3';
import { isThrottlingError, isTransientError } from '@smithy/core/retry';
import { bounds, safeText } from '../config/bounds.ts';
import { type ProxyName, proxyProblemOf } from '../network/proxies.ts';
import type { S3Config } from './config.ts';
import { DestinationError } from './destination.ts';

/** Errors that concern the owner of the credentials of a request. */
const credentialErrors: ReadonlySet<string> = new Set([
  'InvalidAccessKeyId',
  'SignatureDoesNotMatch',
  'InvalidToken',
  'CredentialsProviderError',
]);

/** Errors of STS that concern the credentials which assume a role, and not the role. */
const isCredentialErrorOfSts = (name: string): boolean =>
  /^(ExpiredToken|InvalidClientTokenId|UnrecognizedClient|SignatureDoesNotMatch|MissingAuthenticationToken|CredentialsProviderError)/.test(
    name,
  );

/**
 * Names the operator as the owner of an error that a tenant cannot fix: the clock and the credentials of exportd's machine,
 * its session tokens, and TLS to AWS itself. Only AWS is believed: with the answers of a server of its own, a tenant could wake
 * the operator. Machine credentials sign requests to AWS alone, and the SDK corrects its clock by the server's before it gives up.
 */
export function withOwner(
  failure: DestinationError,
  { aws_access_key_id, endpoint_url }: Pick<S3Config, 'aws_access_key_id' | 'endpoint_url'>,
): DestinationError {
  const { type, message } = failure;
  if (failure.owner !== 'tenant' || endpoint_url !== null) return failure;
  if (type === 'RequestTimeTooSkewed')
    return ofOperator(
      type,
      "The clocks of exportd and AWS differ too much; set the clock of exportd's machine.",
    );
  // Configs have no session tokens: the machine has one, or exportd got it for a role.
  if (type === 'ExpiredToken' || (aws_access_key_id === undefined && credentialErrors.has(type)))
    return machineCredentialsFailed(type);
  if (type === 'TlsError')
    return ofOperator(
      type,
      `${message} The server is AWS: check the certificates and the clock of exportd's machine.`,
    );
  return failure;
}

/** Tokens, signatures and keys of AWS, of a destination or of exportd's machine. */
const secretShapes = /\b(?:AKIA|ASIA)[A-Z0-9]{8,}|[A-Za-z0-9+=]{40,}/g;

/** The text of a server for the owner of an export: short, on one line, without markup and secrets. */
function serverText(text: unknown, secrets: readonly (string | undefined)[]): string | undefined {
  if (typeof text !== 'string') return undefined;
  let shown = text.slice(0, bounds.storedText.max);
  for (const secret of secrets) if (secret) shown = shown.replaceAll(secret, '…');
  shown = safeText(shown.replace(secretShapes, '…').replace(/[<>]/g, ' ')).replace(/\s+/g, ' ').trim();
  const { max } = bounds.serverText;
  return shown === '' ? undefined : shown.length > max ? `${shown.slice(0, max - 1)}…` : shown;
}

/**
 * Adds what a server says of an error.
 * @param ofMachine whether the request was signed with the credentials of exportd's machine: then it may name the operator's account
 */
export function withServerText(
  failure: DestinationError,
  error: unknown,
  { aws_access_key_id, aws_secret_access_key }: Pick<S3Config, 'aws_access_key_id' | 'aws_secret_access_key'>,
  { ofMachine }: { readonly ofMachine: boolean },
): DestinationError {
  if (failure === error || failure.owner === 'operator' || ofMachine) return failure;
  if (!(error instanceof Error) || !('$metadata' in error)) return failure;
  // Without a message the SDK repeats the name.
  if (['UnknownError', error.name].includes(error.message)) return failure;
  const { type, message, transient, owner, unavailable } = failure;
  const said = serverText(error.message, [aws_access_key_id, aws_secret_access_key]);
  return new DestinationError(type, message, { transient, owner, unavailable, said });
}

/** An error that is retried when the operator may have fixed it, and never within an attempt. */
const ofOperator = (type: string, message: string): DestinationError =>
  new DestinationError(type, message, { transient: false, owner: 'operator' });

const machineCredentialsFailed = (type: string): DestinationError =>
  ofOperator(type, `The AWS credentials of exportd's machine are missing, invalid or expired (${type}).`);

/** Messages for permanent S3 error codes, with what to check. */
const permanentErrors: Readonly<Record<string, string>> = {
  InvalidAccessKeyId: 'The S3 server rejected the access key; check aws_access_key_id of the destination.',
  SignatureDoesNotMatch:
    'The S3 server rejected the signature of a request; check aws_secret_access_key and region of the destination.',
  AccessDenied:
    'The S3 server denied access; check that the credentials of the destination may write to its bucket and prefix.',
  AllAccessDisabled: 'All access to this bucket is disabled; contact the owner of the bucket.',
  AccountProblem: 'The S3 account has a problem that prevents requests; contact its provider.',
  InvalidToken: 'The S3 server rejected the session token; renew the credentials of the destination.',
  ExpiredToken: 'The session token has expired; renew the credentials of the destination.',
  InvalidBucketName: 'The S3 server rejected the bucket name; check bucket_name of the destination.',
  PermanentRedirect: 'The bucket is in another region; check region and endpoint_url of the destination.',
  AuthorizationHeaderMalformed: 'The bucket is in another region; check region of the destination.',
  IllegalLocationConstraintException: 'The bucket is in another region; check region of the destination.',
  RequestTimeTooSkewed: "The clocks of the S3 server and exportd differ too much; check the server's clock.",
  QuotaExceeded: 'The storage quota of the S3 server is exceeded; delete objects or raise the quota.',
  EntityTooLarge: 'The file is larger than the S3 server accepts.',
  CredentialsProviderError:
    'Neither the destination nor exportd has credentials; set aws_access_key_id and aws_secret_access_key.',
  'KMS.NotFoundException': 'The KMS key does not exist; check kms_key_id of the destination.',
  'KMS.DisabledException': 'The KMS key is disabled; enable it or change kms_key_id of the destination.',
  'KMS.KMSInvalidStateException':
    'The KMS key cannot be used in its current state; check kms_key_id of the destination.',
};

/** Whether a store that responds with this error has not done what it was asked for. */
export const isRefusal = ({ type }: DestinationError): boolean =>
  type in permanentErrors || type === 'NoSuchBucket' || type === 'NotImplemented';

/** Other names of the same errors. Responses to HEAD have no body, so only their status is known. */
const aliases: Readonly<Record<string, string>> = {
  Forbidden: 'AccessDenied',
  '403': 'AccessDenied',
  '409': 'ConditionalRequestConflict',
  '412': 'PreconditionFailed',
  // versitygw's code for an unknown access key.
  XAdminUserNotFound: 'InvalidAccessKeyId',
};

/** Error codes of a failed write condition: the object exists, or is another one. */
export const conditionFailureCodes: ReadonlySet<string> = new Set([
  'PreconditionFailed',
  'ConditionalRequestConflict',
]);

/** Errors of stores that accept every part and refuse their sizes when the upload is completed. */
export const partRefusals: ReadonlySet<string> = new Set(['InvalidPart', 'EntityTooSmall']);

/** Transient statuses among 400 to 499. */
const transientStatuses: ReadonlySet<number> = new Set([408, 409, 412, 425, 429]);

/** Whether a request that was rejected with this status may succeed later. */
export const isTransientStatus = (status: number): boolean => transientStatuses.has(status);

/** Error codes for a body that differs from its checksum: it did not arrive as it was sent. */
export const damagedBodyCodes: ReadonlySet<string> = new Set([
  'BadDigest',
  'IncompleteBody',
  'XAmzContentSHA256Mismatch',
]);
/** Transient error codes with a 4xx status that the SDK does not repeat: a new upload or a later request may succeed. */
const transientCodes = new Set(['NoSuchUpload', 'InvalidPart', ...damagedBodyCodes]);

/** Whether the server limits the rate of requests, also of those to its key service. */
export const isThrottled = (name: string): boolean =>
  isThrottlingError({ name: name.replace(/^KMS\./, ''), message: '' });

const tlsCodes = /^(CERT_|ERR_TLS_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|EPROTO$)/;

/**
 * Converts an error of the S3 client. The message is our own, because messages of servers and of the SDK may contain
 * access keys.
 * @param bucket named in the message when it does not exist
 */
export function toDestinationError(error: unknown, operation: string, bucket?: string): DestinationError {
  if (error instanceof DestinationError) return error;
  const inner = causeOf(error);
  if (inner) return inner;
  const { name, code, status } = describe(error);
  const ofProxy = proxyFailure(error, `the S3 server for ${operation}`);
  if (ofProxy) return ofProxy;
  // The SDK uses the name Unknown for errors without body and code.
  const type = aliases[name === 'Unknown' ? String(status) : name] ?? name;
  const known = permanentErrors[type];
  if (known !== undefined) return new DestinationError(type, known, { transient: false });
  if (type === 'NoSuchBucket')
    return new DestinationError(
      type,
      `The bucket ${bucket === undefined ? '' : `'${bucket}' `}does not exist; check bucket_name, region and endpoint_url of the destination.`,
      { transient: false },
    );
  if (code !== undefined && tlsCodes.test(code))
    return new DestinationError(
      'TlsError',
      `The TLS connection to the S3 server failed (${code}); check endpoint_url of the destination and the certificate of the server. The operator can trust its CA with EXPORTD_S3_CA_BUNDLE.`,
      { transient: false },
    );
  if (status === undefined)
    return new DestinationError(
      'S3Unreachable',
      `The S3 server did not respond to ${operation}${wayOf(error)} (${code ?? name}); check endpoint_url of the destination and whether the server is running.`,
      { transient: true, unavailable: true },
    );
  if (!(error instanceof S3ServiceException)) return notAnS3Server(operation, status);
  const transient =
    status >= 500
      ? type !== 'NotImplemented'
      : isTransientStatus(status) ||
        transientCodes.has(type) ||
        isThrottled(type) ||
        isTransientError(error as Parameters<typeof isTransientError>[0]);
  return new DestinationError(type, `The S3 server rejected ${operation} with ${type} (status ${status}).`, {
    transient,
    unavailable: transient && status >= 500,
  });
}

/** What is between exportd and the internet asks for a login, which no owner of a bucket has. */
export const proxyLoginMissing = (): DestinationError =>
  ofOperator(
    'ProxyAuthenticationRequired',
    "A proxy between exportd's machine and the S3 server asks for a login (status 407): write user and password into HTTPS_PROXY or HTTP_PROXY, or let the machine reach the server without one.",
  );

/**
 * The error of a request that a proxy of the environment did not connect; undefined of others. Owners of exports read it, so it
 * names the setting and not the address.
 * @param target what the request was sent to, and what for
 */
function proxyFailure(error: unknown, target: string): DestinationError | undefined {
  const proxy = proxyIn(error);
  const problem = proxy && proxyProblemOf(error);
  if (!problem) return undefined;
  const { isDown, status, code } = problem;
  if (isDown)
    return ofOperator(
      'ProxyUnreachable',
      `The proxy of ${proxy} cannot be reached (${code}): check that it is up, or list what is reached without it in NO_PROXY.`,
    );
  if (status === 407) return proxyLoginMissing();
  return new DestinationError(
    'S3Unreachable',
    `The proxy of ${proxy} did not connect to ${target}${status === undefined ? '' : ` (status ${status})`}; check endpoint_url of the destination, and what the proxy allows.`,
    { transient: true, unavailable: true },
  );
}

/** The setting of the proxy that a failed request went through. */
const proxyIn = (error: unknown): ProxyName | undefined =>
  error instanceof Error ? (error as { readonly proxy?: ProxyName }).proxy : undefined;

/** How a request was sent, to follow what it was sent for. */
const wayOf = (error: unknown): string => {
  const proxy = proxyIn(error);
  return proxy === undefined ? '' : ` through the proxy of ${proxy}`;
};

/** The response is not an S3 error. It comes from a web server, gateway or proxy. */
export const notAnS3Server = (operation: string, status: number): DestinationError =>
  new DestinationError(
    'NotAnS3Server',
    `The response to ${operation} is not from an S3 server (status ${status}); check endpoint_url of the destination.`,
    {
      transient: status < 400 || status >= 500 || isTransientStatus(status),
      unavailable: status < 400 || status >= 500,
    },
  );

/** Converts an error of getting the credentials of exportd's machine, which no owner of an export can mend. */
export const toMachineError = (error: unknown): DestinationError =>
  proxyFailure(error, 'AWS STS') ?? machineCredentialsFailed(describe(error).name);

/**
 * Converts an error of assuming a role. The message contains only the name of AWS's error.
 * @param options.usesMachine whether the credentials of exportd's machine assume the role
 */
export function toAssumeRoleError(
  error: unknown,
  { usesMachine }: { usesMachine: boolean },
): DestinationError {
  if (error instanceof DestinationError) return error;
  const ofProxy = proxyFailure(error, 'AWS STS');
  if (ofProxy) return ofProxy;
  const { name, code, status } = describe(error);
  // A request expires when the clocks differ.
  if (name === 'RequestExpired' || (usesMachine && isCredentialErrorOfSts(name)))
    return ofOperator(
      'AssumeRoleFailed',
      `exportd's machine could not assume the role of the destination (${name}); check its AWS credentials and its clock.`,
    );
  const known = name === 'CredentialsProviderError' ? permanentErrors[name] : undefined;
  if (known !== undefined) return new DestinationError(name, known, { transient: false });
  if (status === undefined)
    return new DestinationError(
      'StsUnreachable',
      `AWS STS did not respond when assuming the role of the destination${wayOf(error)} (${code ?? name}).`,
      { transient: true, unavailable: true },
    );
  return new DestinationError(
    'AssumeRoleFailed',
    `The role of the destination could not be assumed (${name}); check role_arn, and that the trust policy of the role allows exportd's account or the owner of aws_access_key_id and demands the external_id of this destination.`,
    {
      transient: status >= 500 || isTransientStatus(status) || isThrottled(name),
      unavailable: status >= 500,
    },
  );
}

/** A DestinationError thrown inside the client, such as for a private address. */
function causeOf(error: unknown): DestinationError | undefined {
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  return cause instanceof DestinationError ? cause : undefined;
}

/** The code of an S3 error becomes the error's name: whatever the server wrote, in any length. */
const codePattern = new RegExp(`^[A-Za-z][A-Za-z0-9.]{0,${bounds.errorCode.max - 1}}$`);
const unknownCode = 'UnknownError';
/** Parsed XML can be anything. The SDK's name of errors with neither body nor code is a status. */
const safeCode = (name: unknown): string =>
  typeof name === 'string' && (codePattern.test(name) || /^\d{3}$/.test(name)) ? name : unknownCode;

function describe(error: unknown): { name: string; code: string | undefined; status: number | undefined } {
  if (!(error instanceof Error)) return { name: unknownCode, code: undefined, status: undefined };
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  const metadata =
    '$metadata' in error ? (error.$metadata as { httpStatusCode?: number } | undefined) : undefined;
  return { name: safeCode(error.name), code, status: metadata?.httpStatusCode };
}

/** Whether a request failed with one of these errors. */
export const isErrorType = (error: unknown, ...types: readonly string[]): error is DestinationError =>
  error instanceof DestinationError && types.includes(error.type);
