import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import pg from 'pg';
import { safeText } from '../config/bounds.ts';
import { isOperatorFault, operatorFaultDetails } from '../contract/failure_details.ts';
import { DestinationError } from '../destination/destination.ts';
import { CommandRejected, type ErrorOwner } from '../domain/errors.ts';
import { connectionErrorCode, isConnectionLost } from '../journal/database.ts';
import { isTemporalUnavailable, rejectionIn, rejectionMessages } from './grpc_errors.ts';

/** What an error means. Its type and message become a run's `latest_error`, as `type: message`. */
interface ErrorClassification {
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
  GenerationSuperseded: 'none',
  CauseMismatch: 'none',
  ConfigVersionNotFound: 'operator',
  CannotVerify: 'tenant',
  // Another worker may have the key.
  SecretUnreadable: 'operator',
  EncoderThreadExited: 'none',
  UnencodableRow: 'tenant',
  TooManyRejectedRows: 'tenant',
  TooManyFiles: 'tenant',
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
  InvalidSourceValue: 'operator',
  ProtocolError: 'none',
  SourceBusy: 'none',
  SourceIsStandby: 'operator',
  RowsHidden: 'operator',
  DatabaseIsStandby: 'operator',
  // Another worker may have the other version.
  ReadModelsDiffer: 'operator',
};

/** Classifies an error for a run's `latest_error` and for Temporal. Its texts may be those of servers of others. */
export function classifyError(error: unknown): ErrorClassification {
  const { type, message, ...classification } = classify(error);
  return { ...classification, type: safeText(type), message: safeText(message) };
}

function classify(error: unknown): ErrorClassification {
  if (error instanceof DestinationError)
    return {
      type: error.type,
      message: error.messageForOwner,
      permanent: error.owner === 'tenant' && !error.transient,
      owner: error.owner,
      retry_delay_ms: error.retry_delay_ms,
    };
  if (error instanceof CommandRejected)
    return owned('tenant', { type: 'InvalidConfiguration', message: error.message });
  if (error instanceof pg.DatabaseError) return classifyState(error);
  if (!(error instanceof Error)) return unexpected(typeof error);
  // Nothing to fix or report: the run has its outcome.
  if (error.name === 'RunEnded')
    return { type: error.name, message: error.message, permanent: true, owner: 'none' };
  const owner = ownErrors[error.name];
  if (owner) return owned(owner, { type: error.name, message: error.message });
  const rejection = rejectionIn(error);
  if (rejection) return owned('operator', { type: rejection, message: rejectionMessages[rejection] });
  if (isTemporalUnavailable(error))
    return owned('none', {
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
    return owned('none', {
      type: 'DatabaseUnavailable',
      message: `The connection to the database was lost${suffix}; check that it is up.`,
    });
  return undefined;
}

const unexpected = (name: string): ErrorClassification => ({
  type: 'UnexpectedError',
  message: `Unexpected ${name}. See the worker log for the stack trace.`,
  permanent: false,
  owner: 'none',
});

/**
 * Converts an activity's error to a Temporal failure: its type, a message for users, and whether Temporal retries. The
 * original error is not attached: its text may contain a secret or a row, and histories store failures.
 */
export const toApplicationFailure = (error: unknown): ApplicationFailure =>
  error instanceof ApplicationFailure ? error : failureOf(classifyError(error));

/** The failure of an attempt that ended with a classified error. */
export const failureOf = ({
  type,
  message,
  permanent,
  owner,
  retry_delay_ms,
}: ErrorClassification): ApplicationFailure =>
  ApplicationFailure.create({
    type,
    message,
    nonRetryable: permanent,
    ...(owner === 'operator' && { details: [operatorFaultDetails] }),
    ...(retry_delay_ms !== undefined && {
      // At least one: Temporal takes a delay of zero for a timeout, and ends the activity.
      nextRetryDelay: Math.max(1, Math.ceil(retry_delay_ms)),
      // An error that knows its end is expected: the SDK would log each attempt of each run.
      category: ApplicationFailureCategory.BENIGN,
    }),
  });

/** The operator's fault that an activity failed with; undefined for any other failure. */
export function operatorFaultOf(failure: unknown): { type: string; message: string } | undefined {
  if (!(failure instanceof ApplicationFailure) || !isOperatorFault(failure.details)) return undefined;
  return { type: failure.type ?? 'Error', message: failure.message };
}

/** The stack trace of an error without its message, which may contain a row. */
export const stackFramesOf = (error: unknown): string[] =>
  error instanceof Error ? (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line)) : [];

/** `server` is PostgreSQL's message, which contains identifiers only. */
type Describe = (server: string, state: string) => Pick<ErrorClassification, 'type' | 'message' | 'owner'>;

/** SQLSTATEs with their own message. */
const states: Readonly<Record<string, Describe>> = {
  '2201B': (server) => ({
    type: 'InvalidRegularExpression',
    message: `PostgreSQL rejects a regular expression in the export's filters (${server}). Correct the field 'filters' of its destination.`,
    owner: 'tenant',
  }),
  '42P01': (server) => ({
    type: 'UndefinedTable',
    message: `A relation is missing (${server}). Check the settings EXPORTD_EVENTS_RELATION, EXPORTD_PERSONS_RELATION and EXPORTD_PERSON_DISTINCT_IDS_RELATION.`,
    owner: 'operator',
  }),
  '42703': (server) => ({
    type: 'UndefinedColumn',
    message: `A relation lacks a column (${server}). "exportd source check" compares the relations of the source with what exports need.`,
    owner: 'operator',
  }),
  '42501': (server) => ({
    type: 'InsufficientPrivilege',
    message: server.includes('row-level security')
      ? `A policy of row security would hide rows of the source from exportd (${server}). Run "alter role … bypassrls" for the role of SOURCE_DATABASE_URL, or for the owner of the view that reads the table, or create a policy that shows it all rows.`
      : `The database denied access (${server}). Grant exportd's role the permission to read.`,
    owner: 'operator',
  }),
  '3D000': (server) => ({
    type: 'UndefinedDatabase',
    message: `The database does not exist (${server}). Check DATABASE_URL and SOURCE_DATABASE_URL.`,
    owner: 'operator',
  }),
  '3F000': (server) => ({
    type: 'UndefinedSchema',
    message: `The database lacks a schema (${server}). Check the names of the relations in exportd's settings.`,
    owner: 'operator',
  }),
  '53100': () => ({
    type: 'DiskFull',
    message: "The disk of the database's server is full. Free space on it.",
    owner: 'operator',
  }),
  '55P03': (server) => ({
    type: 'RelationLocked',
    message: `A relation of the database is locked (${server}). End the transaction that holds the lock.`,
    owner: 'operator',
  }),
  '57014': (_, state) => ({
    type: 'StatementTimeout',
    message: `A statement exceeded its timeout and was cancelled (SQLSTATE ${state}). Statements on the source have EXPORTD_SOURCE_STATEMENT_TIMEOUT.`,
    owner: 'none',
  }),
};

/** The same by SQLSTATE class: its first two characters. */
const classes: Readonly<Record<string, Describe>> = {
  // In src/source, one that no query and no filter causes becomes `InvalidSourceValue`.
  '22': (_, state) => ({
    type: 'DataException',
    message: `The source could not compute a value of a row (SQLSTATE ${state}). Correct the export's \`dialect_query\`, or the filters of its destination.`,
    owner: 'tenant',
  }),
  // In src/source, one that a row causes becomes `InvalidSourceValue`, which names it.
  XX: (server, state) => ({
    type: 'DatabaseDamaged',
    message: `PostgreSQL reports an internal error or damaged data (${server}, SQLSTATE ${state}). Look into the log of its server.`,
    owner: 'operator',
  }),
  '28': () => ({
    type: 'InvalidAuthorization',
    message: 'The database rejected the login. Check DATABASE_URL and SOURCE_DATABASE_URL.',
    owner: 'operator',
  }),
  // In src/source, one that an export's own query causes becomes `SelectionRejected`, one of a column `InvalidRelation`.
  '42': (server, state) => ({
    type: 'StatementRejected',
    message: `The database rejected a statement (${server}, SQLSTATE ${state}). Run "exportd source check", which compares the relations of the source with what exports need.`,
    owner: 'operator',
  }),
};

/** What PgBouncer says of parameters that it does not know, and of transactions in a mode without them. */
const poolerRefusal = /startup parameter|pooling mode/i;
/** What an operator can set so that a pooler does not get in the way. */
export const poolerAdvice =
  'DATABASE_URL must lead to PostgreSQL itself, or to a pooler in session mode that ignores startup parameters (pool_mode = session, ignore_startup_parameters = options, statement_timeout); SOURCE_DATABASE_URL may also lead to one in transaction mode.';

/** Classifies an error that PostgreSQL reported. Its message never contains a value. */
function classifyState(error: pg.DatabaseError): ErrorClassification {
  const state = error.code ?? '';
  if (state === '08P01' && poolerRefusal.test(error.message))
    return owned('operator', {
      type: 'PoolerUnsupported',
      message: `The connection pooler before the database refuses what exportd needs (${error.message}). ${poolerAdvice}`,
    });
  const describe = states[state] ?? classes[state.slice(0, 2)];
  if (!describe)
    return owned('none', {
      type: 'DatabaseUnavailable',
      message: `The database could not execute a statement (SQLSTATE ${state}).`,
    });
  const { owner, ...described } = describe(error.message, state);
  return owned(owner, described);
}
