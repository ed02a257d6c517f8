import pg from 'pg';
import { DestinationError } from '../destination/destination.ts';
import { CommandRejected, type ErrorOwner } from '../domain/errors.ts';
import { connectionErrorCode, isConnectionLost } from '../journal/database_errors.ts';
import { isTemporalUnavailable, rejectionIn, rejectionMessages } from './grpc_errors.ts';
import { classifyState } from './sqlstates.ts';

/** What an error means. Its type and message become a run's `latest_error`, as `type: message`. */
export interface ErrorClassification {
  readonly type: string;
  /** A message for users: what happened and how to fix it. It never contains a secret or a row. */
  readonly message: string;
  /** Whether retrying is useless, so that the run ends. Never for an operator's fault. */
  readonly permanent: boolean;
  readonly owner: ErrorOwner;
  /** When the next attempt may succeed, in milliseconds; by default the retry policy of the activity decides. */
  readonly retry_delay_ms?: number | undefined;
}

/** Errors of exportd by name, and their owners; their messages are for users. Those of a tenant are permanent. */
const ownErrors: Readonly<Record<string, ErrorOwner>> = {
  // The newer attempt may be the stalled one, so a live worker retries.
  GenerationSuperseded: 'nobody',
  CauseMismatch: 'nobody',
  ConfigVersionNotFound: 'operator',
  DestinationTestNotFound: 'tenant',
  // Another worker may have the key.
  SecretUnreadable: 'operator',
  EncoderThreadExited: 'nobody',
  UnencodableRow: 'tenant',
  TooManyRejectedRows: 'tenant',
  RowsMissingInSource: 'tenant',
  MissingSortKey: 'operator',
  MalformedBlock: 'operator',
  RelationNotFound: 'operator',
  InvalidRelationName: 'operator',
  InvalidRelation: 'operator',
  FingerprintHashDiffers: 'operator',
  UnsupportedSelection: 'tenant',
  RowQueryFailed: 'tenant',
  SelectionRejected: 'tenant',
  ProtocolError: 'nobody',
  SourceBusy: 'nobody',
  SourceIsStandby: 'operator',
  DatabaseIsStandby: 'operator',
};

/** Classifies an error for a run's `latest_error` and for Temporal. */
export function classifyError(error: unknown): ErrorClassification {
  if (error instanceof DestinationError)
    return {
      type: error.type,
      message: error.message,
      permanent: error.owner === 'tenant' && !error.transient,
      owner: error.owner,
      retry_delay_ms: error.retry_delay_ms,
    };
  if (error instanceof CommandRejected)
    return owned('tenant', { type: 'InvalidConfiguration', message: error.message });
  if (error instanceof pg.DatabaseError) {
    const { owner, ...described } = classifyState(error);
    return owned(owner, described);
  }
  if (!Error.isError(error)) return unexpected(typeof error);
  // Nobody has to fix anything, and nobody is told: the run has its outcome.
  if (error.name === 'RunEnded')
    return { type: error.name, message: error.message, permanent: true, owner: 'nobody' };
  const owner = ownErrors[error.name];
  if (owner) return owned(owner, { type: error.name, message: error.message });
  const rejection = rejectionIn(error);
  if (rejection) return owned('operator', { type: rejection, message: rejectionMessages[rejection] });
  if (isTemporalUnavailable(error))
    return owned('nobody', {
      type: 'TemporalUnavailable',
      message: 'Temporal did not accept a request; check that it is up.',
    });
  return classifyConnection(error) ?? unexpected(error.name);
}

const owned = (
  owner: ErrorOwner,
  described: Pick<ErrorClassification, 'type' | 'message'>,
): ErrorClassification => ({ ...described, permanent: owner === 'tenant', owner });

const hostNotFoundCodes: ReadonlySet<string> = new Set(['ENOTFOUND', 'EAI_AGAIN']);
const diskFullCodes: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT']);
const tlsCodes = /^(CERT_|ERR_TLS_|ERR_SSL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH$|EPROTO$)/;
/** What the PostgreSQL client throws without a code: the server has no TLS, or the URL has no password. */
const tlsMissing = /does not support SSL/i;
const passwordMissing = /^SASL: .*password/i;

/** Errors of the connection to a database, which has no SQLSTATE. S3 clients throw `DestinationError`. */
function classifyConnection(error: Error): ErrorClassification | undefined {
  const code = connectionErrorCode(error);
  const suffix = code === '' ? '' : ` (${code})`;
  if (hostNotFoundCodes.has(code))
    return owned('operator', {
      type: 'DatabaseHostNotFound',
      message: `The name of the database's host could not be resolved${suffix}. Check DNS, DATABASE_URL and SOURCE_DATABASE_URL.`,
    });
  if (tlsCodes.test(code) || tlsMissing.test(error.message))
    return owned('operator', {
      type: 'DatabaseTlsError',
      message: `The TLS connection to the database failed${suffix}. Check the certificate of its server, and the TLS options of DATABASE_URL and SOURCE_DATABASE_URL.`,
    });
  if (passwordMissing.test(error.message))
    return owned('operator', {
      type: 'InvalidAuthorization',
      message: 'The database requires a password. Check DATABASE_URL and SOURCE_DATABASE_URL.',
    });
  if (diskFullCodes.has(code))
    return owned('operator', {
      type: 'DiskFull',
      message: `The disk of exportd's machine is full${suffix}. Free space on it.`,
    });
  if (isConnectionLost(error))
    return owned('nobody', {
      type: 'DatabaseUnavailable',
      message: `The connection to the database was lost${suffix}; check that it is up.`,
    });
  return undefined;
}

const unexpected = (name: string): ErrorClassification => ({
  type: 'UnexpectedError',
  message: `Unexpected ${name}. See the worker log for the stack trace.`,
  permanent: false,
  owner: 'nobody',
});
