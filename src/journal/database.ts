import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { answerSettings, setStatements, startupOptions } from '../network/postgresql_session.ts';
import { isPooled, prepareStatements } from '../network/prepared_statements.ts';
import { traceStatements } from '../tracing/spans.ts';

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
  return own === '' && first instanceof Error ? connectionErrorCode(first) : own;
}

/** Whether an error means that a database connection failed or broke. */
export const isConnectionLost = (error: unknown): boolean =>
  error instanceof Error &&
  !(error instanceof pg.DatabaseError) &&
  (networkCodes.has(connectionErrorCode(error)) || brokenConnection.test(error.message));

const readOnlyTransaction = '25006';

/** Whether a database rejected a write because it is a standby or read-only. */
export const isReadOnly = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && error.code === readOnlyTransaction;

/** Other transient SQLSTATE classes: a conflict with another transaction, a failover, a lock that is not available. */
const transientClasses = new Set(['25', '40', '55']);

/** The read models of a control database are those of another version of exportd, so that this one must not write. */
export class ReadModelsDiffer extends Error {
  override readonly name = 'ReadModelsDiffer';
}

/** What PostgreSQL reports of a prepared statement whose columns have other types since a migration. */
const staleStatement = 'cached plan must not change result type';

const isStale = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && error.message === staleStatement;

/** Whether a retry of the same statements may succeed. */
export function isTransient(error: unknown): boolean {
  if (isDatabaseUnavailable(error) || error instanceof ReadModelsDiffer) return true;
  if (!(error instanceof pg.DatabaseError)) return false;
  const state = error.code ?? '';
  return transientClasses.has(state.slice(0, 2)) || state === statementCancelled || isStale(error);
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

/** A pool of connections to the control database. */
export type Pool = pg.Pool;
/** One connection, inside a transaction. */
export type Connection = pg.PoolClient;

const { builtins } = pg.types;

const parseTime = (text: string): string => new Date(text).toISOString();

/** Type parsers of this pool: int8 as number, timestamptz as ISO 8601 string in UTC with milliseconds. */
const typeParsers: pg.CustomTypesConfig = {
  getTypeParser: (id, format) => {
    if (id === builtins.INT8) return Number;
    if (id === builtins.TIMESTAMPTZ) return parseTime;
    return pg.types.getTypeParser(id, format) as never;
  },
};

interface PoolOptions {
  readonly max: number;
  /** Milliseconds to wait for a connection; by default 5 seconds. */
  readonly connectTimeoutMs?: number;
  /**
   * Milliseconds after which PostgreSQL cancels a statement. If a connection has not responded after 125% of it, the
   * statement fails and the pool drops the connection. By default statements are cancelled after a minute and the client
   * waits without a timeout, because migrations and rebuilds raise the limit for their long statements.
   */
  readonly statementTimeoutMs?: number;
  /** Whether the server may be a standby; by default it must accept writes. */
  readonly allowsStandby?: boolean;
  /** Whether its connections prepare the statements that they repeat, for a process that repeats few different ones. */
  readonly preparesStatements?: boolean;
}

const sessionSettings = {
  ...answerSettings,
  // The server detects a lost client within a minute: the client may hold the reconciler's lock.
  idle_in_transaction_session_timeout: '60000',
  tcp_keepalives_idle: '20',
  tcp_keepalives_interval: '10',
  tcp_keepalives_count: '3',
};

/** A connection is replaced after this time, even if it is never idle: after a failover the address may lead elsewhere. */
const maxConnectionSeconds = 600;
const defaultConnectTimeoutMs = 5_000;
const defaultStatementTimeoutMs = 60_000;
/** The client's timeout for a statement, as a multiple of the server's. */
const queryTimeoutFactor = 1.25;
const maxPreparedStatements = 200;

/** Opens a pool. The source's barrier ignores its sessions, which it recognizes by the application name. */
export function createPool(
  databaseUrl: string,
  {
    max,
    connectTimeoutMs,
    statementTimeoutMs,
    allowsStandby = false,
    preparesStatements = false,
  }: PoolOptions,
): Pool {
  const { url, options } = withoutOptions(databaseUrl);
  const pool = new pg.Pool({
    connectionString: url,
    max,
    application_name: 'exportd',
    types: typeParsers,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    connectionTimeoutMillis: connectTimeoutMs ?? defaultConnectTimeoutMs,
    statement_timeout: statementTimeoutMs ?? defaultStatementTimeoutMs,
    ...(statementTimeoutMs !== undefined && { query_timeout: statementTimeoutMs * queryTimeoutFactor }),
    maxLifetimeSeconds: maxConnectionSeconds,
    // Ours come last, which then apply.
    options: `${options} ${startupOptions(sessionSettings)}`.trim(),
    ...(!allowsStandby && { verify: rejectStandby }),
  });
  // The pool replaces a broken idle connection, and a broken connection in use fails its statement. Without these
  // listeners the error would also end the process.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  if (preparesStatements) prepareStatements(pool, { max: maxPreparedStatements });
  traceStatements(pool, 'control');
  return pool;
}

/** A URL and its parameter `options`, which would replace that of the driver. */
function withoutOptions(databaseUrl: string): { readonly url: string; readonly options: string } {
  if (!URL.canParse(databaseUrl)) return { url: databaseUrl, options: '' };
  const url = new URL(databaseUrl);
  const options = url.searchParams.get('options');
  if (options === null) return { url: databaseUrl, options: '' };
  url.searchParams.delete('options');
  return { url: url.href, options };
}

/**
 * Rejects a new connection to a standby, which an address may lead to during a failover: it would read old states, and
 * reject each append as long as it is open.
 */
function rejectStandby(client: pg.PoolClient, done: (error?: Error) => void): void {
  const query = 'select pg_is_in_recovery() as standby, pg_backend_pid() as pid';
  client
    .query<{ standby: boolean; pid: number }>(query)
    .then(async ({ rows: [row] }) => {
      if (row?.standby === true) throw new DatabaseIsStandby();
      // A pooler that accepts settings of the session at its start may have ignored them.
      if (row && isPooled(client, row.pid)) await client.query(setSession);
      done();
    })
    .catch((error: unknown) => done(asError(error)));
}

/** SQL: sets what `createPool` asks for when it connects. */
const setSession = setStatements({
  ...sessionSettings,
  statement_timeout: String(defaultStatementTimeoutMs),
});

/** How a connection pooler between exportd and PostgreSQL shares the connections of the server. */
export type PoolMode = 'session' | 'transaction';

/** Other transactions that are opened to find out whether they get the session of the first: a pooler reuses the newest. */
const otherTransactions = 3;

/**
 * Finds out whether a connection pooler such as PgBouncer answers at the address of a pool of several connections, and whether
 * a session is kept between transactions, which locks, LISTEN and settings of sessions need.
 * @returns null without a pooler
 */
export async function findPooler(pool: Pool): Promise<PoolMode | null> {
  const mark = randomUUID();
  const client = await pool.connect();
  const others: pg.PoolClient[] = [];
  let pooled = true;
  try {
    const { rows } = await client.query<{ pid: number }>(
      `select pg_backend_pid() as pid, set_config('exportd.session', $1, false)`,
      [mark],
    );
    pooled = isPooled(client, rows[0]?.pid ?? 0);
    if (!pooled) return null;
    for (let count = 0; count < otherTransactions; count += 1) {
      const other = await pool.connect();
      others.push(other);
      await other.query('begin');
      const found = await other.query<{ mark: string | null }>(
        `select current_setting('exportd.session', true) as mark`,
      );
      if (found.rows[0]?.mark === mark) return 'transaction';
    }
    return 'session';
  } finally {
    await Promise.allSettled(others.map((other) => other.query('rollback')));
    for (const connection of [client, ...others]) connection.release(pooled);
  }
}

/** Closes the connections that are idle now. */
async function closeIdleConnections(pool: Pool): Promise<void> {
  for (let left = pool.idleCount; left > 0; left -= 1) (await pool.connect()).release(true);
}

/**
 * Runs `work` in one transaction, which commits when `work` returns and rolls back when it throws. `first`, a query
 * without parameters, is sent together with BEGIN; `work` receives its rows.
 */
export async function inTransaction<Result>(
  pool: Pool,
  work: (connection: Connection, rows: readonly unknown[]) => Promise<Result>,
  first?: string,
): Promise<Result> {
  const connection = await pool.connect();
  let broken: Error | undefined;
  try {
    const started: unknown = await connection.query(first === undefined ? 'begin' : `begin; ${first}`);
    const rows = Array.isArray(started) ? rowsOfLast(started) : [];
    const result = await work(connection, rows);
    await connection.query('commit');
    return result;
  } catch (error) {
    // On a lost connection a rollback would only wait too. PostgreSQL rolls back when it detects the loss.
    if (isConnectionLost(error) || isStale(error)) broken = asError(error);
    else if (isReadOnly(error)) {
      // The server has become a standby, or the pooler before it leads to one: so may the other connections.
      broken = asError(error);
      closeIdleConnections(pool).catch(() => undefined);
    } else await connection.query('rollback').catch((failure: unknown) => (broken = asError(failure)));
    throw error;
  } finally {
    connection.release(broken);
  }
}

const asError = (thrown: unknown): Error => (thrown instanceof Error ? thrown : new Error(String(thrown)));

/** Several statements return several results. */
const rowsOfLast = (results: readonly { readonly rows: readonly unknown[] }[]): readonly unknown[] =>
  results.at(-1)?.rows ?? [];
