import pg from 'pg';

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
/** Messages of the PostgreSQL client about a broken connection, which carry no code. */
const brokenConnection =
  /connection terminated|timeout exceeded when trying to connect|connection error|timeout expired|query read timeout/i;
/** SQLSTATE classes of a server that cannot serve now: connections, resources, an operator at work, the system. */
const outageClasses = new Set(['08', '53', '57', '58']);
const statementCancelled = '57014';

/** The code of a failed connection such as `ECONNREFUSED`; empty when the error has none. */
export function connectionErrorCode(error: Error): string {
  const own = 'code' in error && typeof error.code === 'string' ? error.code : '';
  // Several addresses of one host were tried, each with an error of its own.
  const [first] = error instanceof AggregateError ? (error.errors as unknown[]) : [];
  return own === '' && Error.isError(first) ? connectionErrorCode(first) : own;
}

/** Whether an error says that a connection to a database could not be made or broke. */
export const isConnectionLost = (error: unknown): boolean =>
  Error.isError(error) &&
  !(error instanceof pg.DatabaseError) &&
  (networkCodes.has(connectionErrorCode(error)) || brokenConnection.test(error.message));

/** Beside an outage: lost against another transaction, in a state that a failover leads to, out of locks or of time. */
const passingClasses = new Set(['25', '40', '55']);

/** Whether the same work may succeed when it is done again, because of nothing in the work itself. */
export function isTransient(error: unknown): boolean {
  if (isDatabaseUnavailable(error)) return true;
  if (!(error instanceof pg.DatabaseError)) return false;
  const state = error.code ?? '';
  return passingClasses.has(state.slice(0, 2)) || state === statementCancelled;
}

/** Whether an error comes from a database that is down, starting or overloaded, so that asking again later helps. */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError)) return isConnectionLost(error);
  const state = error.code ?? '';
  return outageClasses.has(state.slice(0, 2)) && state !== statementCancelled;
}
