import pg from 'pg';
import { DestinationError } from '../destination/destination.ts';
import { CommandRejected } from '../domain/errors.ts';
import { connectionErrorCode, isConnectionLost } from '../journal/database_errors.ts';
import { isTemporalUnavailable } from './grpc_errors.ts';

/** What an error means. Its type and message become a run's `latest_error`, as `type: message`. */
export interface ErrorClassification {
  readonly type: string;
  /** A message for users: what happened and how to fix it. It never contains a secret or a row. */
  readonly message: string;
  /** Whether retrying is useless. */
  readonly permanent: boolean;
  /** When the next attempt may succeed, in milliseconds; by default the retry policy of the activity decides. */
  readonly retry_delay_ms?: number | undefined;
}

/** Errors of exportd by name; their messages are for users. */
const ownErrors: Readonly<Record<string, { readonly permanent: boolean }>> = {
  RunEnded: { permanent: true },
  // The newer attempt may be the stalled one, so a live worker retries.
  GenerationSuperseded: { permanent: false },
  CauseMismatch: { permanent: true },
  ConfigVersionNotFound: { permanent: true },
  DestinationTestNotFound: { permanent: true },
  SecretUnreadable: { permanent: true },
  EncoderThreadExited: { permanent: false },
  UnencodableRow: { permanent: true },
  TooManyRejectedRows: { permanent: true },
  RowsMissingInSource: { permanent: true },
  MissingSortKey: { permanent: true },
  MalformedBlock: { permanent: true },
  RelationNotFound: { permanent: true },
  InvalidRelationName: { permanent: true },
  UnsupportedSelection: { permanent: true },
  RowQueryFailed: { permanent: true },
  ProtocolError: { permanent: false },
  // After a failover the address may resolve to the primary again.
  SourceIsStandby: { permanent: false },
};

/** SQLSTATEs that a person has to fix. `server` is PostgreSQL's message, which contains identifiers only. */
const permanentStates: Readonly<Record<string, (server: string) => Omit<ErrorClassification, 'permanent'>>> =
  {
    '2201B': (server) => ({
      type: 'InvalidRegularExpression',
      message: `PostgreSQL rejects a regular expression in the export's filters (${server}). Correct the field 'filters' of its destination.`,
    }),
    '42P01': (server) => ({
      type: 'UndefinedTable',
      message: `The source lacks a relation (${server}). Check the settings EXPORTD_EVENTS_RELATION, EXPORTD_PERSONS_RELATION and EXPORTD_PERSON_DISTINCT_IDS_RELATION.`,
    }),
    '42703': (server) => ({
      type: 'UndefinedColumn',
      message: `The source lacks a column (${server}). Compare its relations with those that exportd expects: src/source/README.md.`,
    }),
    '42501': (server) => ({
      type: 'InsufficientPrivilege',
      message: `The database denied access (${server}). Grant exportd's role the permission to read.`,
    }),
    '3D000': (server) => ({
      type: 'UndefinedDatabase',
      message: `The database does not exist (${server}). Check DATABASE_URL and SOURCE_DATABASE_URL.`,
    }),
  };

/** The same by SQLSTATE class: its first two characters. */
const permanentClasses: Readonly<Record<string, (state: string) => Omit<ErrorClassification, 'permanent'>>> =
  {
    '22': (state) => ({
      type: 'DataException',
      message: `The source could not compute a value of a row (SQLSTATE ${state}). Check the views that exportd reads, and the export's \`dialect_query\` if it has one.`,
    }),
    '28': () => ({
      type: 'InvalidAuthorization',
      message: 'The database rejected the login. Check DATABASE_URL and SOURCE_DATABASE_URL.',
    }),
    '42': (state) => ({
      type: 'StatementRejected',
      message: `The database rejected a statement (SQLSTATE ${state}). Check that the relations of the source have the expected columns and types.`,
    }),
  };

/** Classifies an error for a run's `latest_error` and for Temporal. */
export function classifyError(error: unknown): ErrorClassification {
  if (error instanceof DestinationError)
    return { type: error.type, message: error.message, permanent: !error.transient };
  if (error instanceof CommandRejected)
    return { type: 'InvalidConfiguration', message: error.message, permanent: true };
  if (error instanceof pg.DatabaseError) return classifyState(error);
  if (!(error instanceof Error)) return unexpected(typeof error);
  const own = ownErrors[error.name];
  if (own) return { type: error.name, message: error.message, permanent: own.permanent };
  if (isTemporalUnavailable(error))
    return {
      type: 'TemporalUnavailable',
      message: 'Temporal did not accept a request; check that it is up.',
      permanent: false,
    };
  if (isConnectionLost(error)) {
    const code = connectionErrorCode(error);
    return {
      type: 'DatabaseUnavailable',
      message: `The connection to the database was lost${code === '' ? '' : ` (${code})`}; check that it is up.`,
      permanent: false,
    };
  }
  return unexpected(error.name);
}

function classifyState(error: pg.DatabaseError): ErrorClassification {
  const state = error.code ?? '';
  const known = permanentStates[state]?.(error.message) ?? permanentClasses[state.slice(0, 2)]?.(state);
  if (known) return { ...known, permanent: true };
  const type = state === '57014' ? 'StatementTimeout' : 'DatabaseUnavailable';
  const what =
    state === '57014'
      ? 'A statement exceeded its timeout and was cancelled'
      : 'The database could not execute a statement';
  return { type, message: `${what} (SQLSTATE ${state}).`, permanent: false };
}

const unexpected = (name: string): ErrorClassification => ({
  type: 'UnexpectedError',
  message: `Unexpected ${name}. See the worker log for the stack trace.`,
  permanent: false,
});
