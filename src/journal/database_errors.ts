import pg from 'pg';

/** The control database is a standby, to which nothing can be written. */
export class DatabaseIsStandby extends Error {
  override readonly name = 'DatabaseIsStandby';

  constructor() {
    super('The control database is a standby. Check that DATABASE_URL leads to the primary.');
  }
}

const networkCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
]);
/** Messages of the PostgreSQL client about broken connections, which have no error code. */
const brokenConnection =
  /connection terminated|timeout exceeded when trying to connect|connection error|timeout expired|query read timeout/i;
/**
 * SQLSTATE classes of an unavailable server: connections, refused logins, missing databases, resources, operator
 * intervention, system errors.
 */
const outageClasses = new Set(['08', '28', '3D', '53', '57', '58']);
const statementCancelled = '57014';

/** Returns the code of a connection error, such as `ECONNREFUSED`; empty if it has none. */
export function connectionErrorCode(error: Error): string {
  const own = 'code' in error && typeof error.code === 'string' ? error.code : '';
  // A host with several addresses has an error per address.
  const [first] = error instanceof AggregateError ? (error.errors as unknown[]) : [];
  return own === '' && Error.isError(first) ? connectionErrorCode(first) : own;
}

/** Whether an error means that a database connection failed or broke. */
export const isConnectionLost = (error: unknown): boolean =>
  Error.isError(error) &&
  !(error instanceof pg.DatabaseError) &&
  (networkCodes.has(connectionErrorCode(error)) || brokenConnection.test(error.message));

const readOnlyTransaction = '25006';

/** Whether a database rejected a write because it is a standby or read-only. */
export const isReadOnly = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && error.code === readOnlyTransaction;

/** Other transient SQLSTATE classes: a conflict with another transaction, a failover, a lock that is not available. */
const transientClasses = new Set(['25', '40', '55']);

/** Whether a retry of the same statements may succeed. */
export function isTransient(error: unknown): boolean {
  if (isDatabaseUnavailable(error)) return true;
  if (!(error instanceof pg.DatabaseError)) return false;
  const state = error.code ?? '';
  return transientClasses.has(state.slice(0, 2)) || state === statementCancelled;
}

/**
 * Whether an error comes from a database that is down, starting or overloaded, or refuses the login, so that a later retry
 * may succeed.
 */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (error instanceof DatabaseIsStandby || isReadOnly(error)) return true;
  if (!(error instanceof pg.DatabaseError)) return isConnectionLost(error);
  const state = error.code ?? '';
  return outageClasses.has(state.slice(0, 2)) && state !== statementCancelled;
}
