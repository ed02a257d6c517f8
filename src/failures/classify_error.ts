import pg from 'pg';
import { DestinationError } from '../destination/destination.ts';
import { CommandRejected } from '../domain/errors.ts';
import { connectionErrorCode, isConnectionLost } from '../journal/database_errors.ts';
import { isTemporalUnavailable } from './grpc_errors.ts';

/** How an error ends: its type and message become a run's `latest_error`, as `type: message`. */
export interface ErrorClassification {
  readonly type: string;
  /** A sentence that a user understands and can act on; never a secret, never a row. */
  readonly message: string;
  readonly permanent: boolean;
}

/** Errors of exportd's own whose messages are written for users, by whether trying again can help. */
const ownErrors: Readonly<Record<string, { readonly permanent: boolean }>> = {
  RunEnded: { permanent: true },
  // The newer attempt may itself be the stalled one, so whoever is alive tries again.
  GenerationSuperseded: { permanent: false },
  CauseMismatch: { permanent: true },
  ConfigVersionNotFound: { permanent: true },
  DestinationTestNotFound: { permanent: true },
  SecretUnreadable: { permanent: true },
  EncoderThreadExited: { permanent: false },
  UnencodableRow: { permanent: true },
  TooManyRejectedRows: { permanent: true },
  MissingSortKey: { permanent: true },
  MalformedBlock: { permanent: true },
  RelationNotFound: { permanent: true },
  InvalidRelationName: { permanent: true },
  UnsupportedSelection: { permanent: true },
  RowQueryFailed: { permanent: true },
  ProtocolError: { permanent: false },
  // After a failover the address may lead to the primary again.
  SourceIsStandby: { permanent: false },
};

/** SQLSTATEs that only a person can cure. `server` is PostgreSQL's own sentence, which names identifiers only. */
const permanentStates: Readonly<Record<string, (server: string) => Omit<ErrorClassification, 'permanent'>>> =
  {
    '2201B': (server) => ({
      type: 'InvalidRegularExpression',
      message: `PostgreSQL cannot use a regular expression of the export's filters (${server}); correct the member 'filters' of its destination.`,
    }),
    '42P01': (server) => ({
      type: 'UndefinedTable',
      message: `A relation is missing in the source (${server}); check the settings EXPORTD_EVENTS_RELATION, EXPORTD_PERSONS_RELATION and EXPORTD_PERSON_DISTINCT_IDS_RELATION.`,
    }),
    '42703': (server) => ({
      type: 'UndefinedColumn',
      message: `A column is missing in the source (${server}); compare its relations with those that exportd expects.`,
    }),
    '42501': (server) => ({
      type: 'InsufficientPrivilege',
      message: `The database refused access (${server}); grant the role of exportd the right to read.`,
    }),
    '3D000': (server) => ({
      type: 'UndefinedDatabase',
      message: `The database is missing (${server}); check DATABASE_URL and SOURCE_DATABASE_URL.`,
    }),
  };

/** The same by class, the first two characters of a SQLSTATE. */
const permanentClasses: Readonly<Record<string, (state: string) => Omit<ErrorClassification, 'permanent'>>> =
  {
    '22': (state) => ({
      type: 'DataException',
      message: `The source could not compute a value of a row (SQLSTATE ${state}); check the views that exportd reads, and the export's \`dialect_query\` if it has one.`,
    }),
    '28': () => ({
      type: 'InvalidAuthorization',
      message: 'The database refused the login; check DATABASE_URL and SOURCE_DATABASE_URL.',
    }),
    '42': (state) => ({
      type: 'StatementRefused',
      message: `The database does not accept a statement of exportd (SQLSTATE ${state}); check that the relations of the source have the expected columns and types.`,
    }),
  };

/** Classifies an error for a run's `latest_error` and for Temporal. */
export function classifyError(error: unknown): ErrorClassification {
  if (error instanceof DestinationError)
    return { type: error.type, message: error.message, permanent: !error.transient };
  if (error instanceof CommandRejected)
    return { type: 'InvalidConfiguration', message: error.message, permanent: true };
  if (error instanceof pg.DatabaseError) return classifyState(error);
  if (!(error instanceof Error)) return unexpected('a value that is no error');
  const own = ownErrors[error.name];
  if (own) return { type: error.name, message: error.message, permanent: own.permanent };
  if (isTemporalUnavailable(error))
    return {
      type: 'TemporalUnavailable',
      message: 'Temporal did not take a request of exportd; check that it is up.',
      permanent: false,
    };
  if (isConnectionLost(error)) {
    const code = connectionErrorCode(error);
    return {
      type: 'DatabaseUnavailable',
      message: `The connection to the database broke${code === '' ? '' : ` (${code})`}; check that it is up.`,
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
      ? 'A statement took too long and was cancelled'
      : 'The database could not serve a statement';
  return { type, message: `${what} (SQLSTATE ${state}).`, permanent: false };
}

const unexpected = (name: string): ErrorClassification => ({
  type: 'UnexpectedError',
  message: `exportd met an error that it does not know (${name}); the log of its worker says where.`,
  permanent: false,
});
