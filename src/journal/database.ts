import pg from 'pg';

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

/** Opens a pool. Its application name marks the sessions as exportd's own, which the source's barrier leaves out. */
export function createPool(databaseUrl: string, options: { max: number }): Pool {
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max: options.max,
    application_name: 'exportd',
    types: typeParsers,
    keepAlive: true,
    connectionTimeoutMillis: 5_000,
    statement_timeout: 60_000,
    options: '-c timezone=UTC -c idle_in_transaction_session_timeout=60000',
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
    await connection.query('rollback').catch((rollbackError: unknown) => {
      broken = rollbackError instanceof Error ? rollbackError : new Error(String(rollbackError));
    });
    throw error;
  } finally {
    connection.release(broken);
  }
}

/** Of several statements there are several results. */
const rowsOfLast = (results: readonly { readonly rows: readonly unknown[] }[]): readonly unknown[] =>
  results.at(-1)?.rows ?? [];
