import pg from 'pg';
import { isConnectionLost } from './database_errors.ts';

/** A pool of connections to the control database. */
export type Pool = pg.Pool;
/** One connection, inside a transaction. */
export type Connection = pg.PoolClient;

const { builtins } = pg.types;

/** Types of this pool alone: counts as numbers, times as ISO 8601 strings in UTC with milliseconds. */
const typeParsers: pg.CustomTypesConfig = {
  getTypeParser: (id, format) => {
    if (id === builtins.INT8) return Number;
    if (id === builtins.TIMESTAMPTZ) return (text: string) => new Date(text).toISOString();
    return pg.types.getTypeParser(id, format) as never;
  },
};

/** How a pool is made. */
export interface PoolOptions {
  readonly max: number;
  /** Milliseconds that it may take to get a connection; 5 seconds when nothing is said. */
  readonly connectTimeoutMs?: number;
  /**
   * Milliseconds after which PostgreSQL ends a statement. A connection that says nothing for a quarter longer counts as
   * lost, although nobody reset it: its statement fails and the pool drops it. Without it statements are ended after a
   * minute and silence is waited out, since whoever migrates or rebuilds has statements that take as long as they take.
   */
  readonly statementTimeoutMs?: number;
}

/** The server notices within a minute, too, that a client is gone without a word: it may hold the reconciler's lock. */
const sessionSettings = [
  'timezone=UTC',
  'idle_in_transaction_session_timeout=60000',
  'tcp_keepalives_idle=20',
  'tcp_keepalives_interval=10',
  'tcp_keepalives_count=3',
];

const defaultConnectTimeoutMs = 5_000;
const defaultStatementTimeoutMs = 60_000;
/** How much longer than the server a client waits for the end of a statement. */
const queryTimeoutFactor = 1.25;

/** Opens a pool. Its application name marks the sessions as exportd's own, which the source's barrier leaves out. */
export function createPool(
  databaseUrl: string,
  { max, connectTimeoutMs, statementTimeoutMs }: PoolOptions,
): Pool {
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max,
    application_name: 'exportd',
    types: typeParsers,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    connectionTimeoutMillis: connectTimeoutMs ?? defaultConnectTimeoutMs,
    statement_timeout: statementTimeoutMs ?? defaultStatementTimeoutMs,
    ...(statementTimeoutMs !== undefined && { query_timeout: statementTimeoutMs * queryTimeoutFactor }),
    options: sessionSettings.map((setting) => `-c ${setting}`).join(' '),
  });
  // A connection that breaks is replaced while idle, and fails its statement while in use; without listeners for both
  // it would end the process as well.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}

/**
 * Runs `work` in one transaction: committed when it returns, rolled back when it throws. `first`, a query without
 * values, is sent together with the beginning, and its rows are handed to `work`.
 */
export async function inTransaction<Result>(
  pool: Pool,
  work: (connection: Connection, rows: readonly unknown[]) => Promise<Result>,
  first?: string,
): Promise<Result> {
  const connection = await pool.connect();
  let broken: Error | undefined;
  try {
    const begun: unknown = await connection.query(first === undefined ? 'begin' : `begin; ${first}`);
    const rows = Array.isArray(begun) ? rowsOfLast(begun) : [];
    const result = await work(connection, rows);
    await connection.query('commit');
    return result;
  } catch (error) {
    // On a connection that is lost a rollback would only wait as well; PostgreSQL makes one when it notices.
    if (isConnectionLost(error)) broken = asError(error);
    else await connection.query('rollback').catch((failure: unknown) => (broken = asError(failure)));
    throw error;
  } finally {
    connection.release(broken);
  }
}

const asError = (thrown: unknown): Error => (Error.isError(thrown) ? thrown : new Error(String(thrown)));

/** Of several statements there are several results. */
const rowsOfLast = (results: readonly { readonly rows: readonly unknown[] }[]): readonly unknown[] =>
  results.at(-1)?.rows ?? [];
