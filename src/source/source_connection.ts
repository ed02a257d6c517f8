import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { openReusingSocket } from './reusing_socket.ts';

/** Interval in milliseconds at which a cancellation is repeated while its statement runs. */
const cancelIntervalMs = 200;
/**
 * How many milliseconds longer than the server a client waits for a statement to end before it closes the connection.
 */
const responseGraceMs = 15_000;

/** Connection options of the source; timeouts in milliseconds. */
export interface SourceConnectionOptions {
  readonly sourceUrl: string;
  readonly applicationName: string;
  readonly maxConnections: number;
  readonly statementTimeoutMs: number;
}

/** A READ ONLY transaction, open while `work` runs. */
export interface ReadTransaction {
  readonly connection: pg.PoolClient;
  /** Sets more settings for this transaction only. */
  readonly set: (parameters: Readonly<Record<string, string>>) => Promise<void>;
  /** Cancels the running statement in PostgreSQL; it fails with `query_canceled`. */
  readonly cancel: () => void;
}

/** A pool of connections to the source. */
export interface SourceConnections {
  /** The timeout of a statement that sets no other. */
  readonly statementTimeoutMs: number;
  /**
   * Runs `work` in a READ ONLY transaction. Session settings and `parameters` are set for this transaction only, so
   * that nothing depends on the state of the connection or of a connection pooler.
   * @throws the signal's reason when it is aborted; the running statement is then cancelled in PostgreSQL
   */
  read<Result>(
    parameters: Readonly<Record<string, string>>,
    signal: AbortSignal | undefined,
    work: (transaction: ReadTransaction) => Promise<Result>,
  ): Promise<Result>;
  close(): Promise<void>;
}

/**
 * Opens the pool of the source, which connects on first use, and a separate connection for cancellations, which works
 * when the pool is exhausted.
 */
export function connectToSource(options: SourceConnectionOptions): SourceConnections {
  const readPool = openPool(options, { max: options.maxConnections, connectionTimeoutMillis: 30_000 });
  const cancelPool = openPool(options, { max: 1, connectionTimeoutMillis: 5_000 });
  const sessionSettings = {
    TimeZone: 'UTC',
    jit: 'off',
    statement_timeout: String(options.statementTimeoutMs),
    idle_in_transaction_session_timeout: String(options.statementTimeoutMs),
  };

  const setSession = Object.entries(sessionSettings).map(
    ([name, value]) => `set_config(${pg.escapeLiteral(name)}, ${pg.escapeLiteral(value)}, true)`,
  );
  // One message for both: a run has several transactions, and round trips dominate the cost of a short one.
  const beginStatement = `begin transaction read only; select pg_backend_pid() as pid, ${setSession.join(', ')}`;

  async function beginTransaction(connection: pg.PoolClient): Promise<number | undefined> {
    // Several statements return several results, which the types of the driver do not express.
    const results: unknown = await connection.query(beginStatement);
    const [, session] = results as readonly (pg.QueryResult<{ pid: number }> | undefined)[];
    return session?.rows[0]?.pid;
  }

  const setIn =
    (connection: pg.PoolClient): ReadTransaction['set'] =>
    async (parameters) => {
      const settings = Object.entries(parameters);
      if (settings.length === 0) return;
      const calls = settings.map((_, index) => `set_config($${2 * index + 1}, $${2 * index + 2}, true)`);
      await connection.query(`select ${calls.join(', ')}`, settings.flat());
    };

  return {
    statementTimeoutMs: options.statementTimeoutMs,
    async read(parameters, signal, work) {
      const connection = await acquire(readPool, signal);
      const cannotCancel = Promise.withResolvers<never>();
      cannotCancel.promise.catch(() => undefined);
      const ended = Promise.withResolvers<undefined>();
      let running = false;
      let cancellation = Promise.resolve();
      let pid: number | undefined;
      // Repeated because a server ignores a request that arrives before the statement.
      const cancelWhileRunning = async () => {
        while (running) {
          await cancelPool.query('select pg_cancel_backend($1)', [pid]);
          await Promise.race([ended.promise, delay(cancelIntervalMs, undefined, { ref: false })]);
        }
      };
      const cancel = () => {
        cancellation = cancellation.then(cancelWhileRunning).catch(cannotCancel.reject);
      };
      let broken: Error | undefined;
      try {
        pid = await beginTransaction(connection);
        const set = setIn(connection);
        await set(parameters);
        signal?.throwIfAborted();
        signal?.addEventListener('abort', cancel);
        running = true;
        const done = work({ connection, set, cancel }).finally(() => {
          running = false;
          ended.resolve(undefined);
        });
        const result = await Promise.race([done, cannotCancel.promise]);
        // A pending request must not cancel a later statement.
        await cancellation;
        await connection.query('commit');
        return result;
      } catch (error) {
        await cancellation;
        // A connection is reused only after an error that PostgreSQL reported.
        if (error instanceof pg.DatabaseError)
          await connection.query('rollback').catch((failure: unknown) => (broken = asError(failure)));
        else broken = asError(error);
        throw signal?.aborted ? signal.reason : error;
      } finally {
        signal?.removeEventListener('abort', cancel);
        connection.release(broken);
      }
    },
    async close() {
      await Promise.all([readPool.end(), cancelPool.end()]);
    },
  };
}

const asError = (thrown: unknown): Error => (thrown instanceof Error ? thrown : new Error(String(thrown)));

function openPool(
  options: SourceConnectionOptions,
  size: { max: number; connectionTimeoutMillis: number },
): pg.Pool {
  const pool = new pg.Pool({
    connectionString: options.sourceUrl,
    application_name: options.applicationName,
    stream: openReusingSocket,
    ...size,
    idleTimeoutMillis: 30_000,
    // A peer that disappears is detected by TCP keepalive while idle, and by the query timeout during a statement.
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    query_timeout: options.statementTimeoutMs + responseGraceMs,
  });
  // A broken connection fails the running statement, or is replaced while idle. Without a listener it would also end
  // the process.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}

/** Acquires a connection of the pool. An abort ends the wait. */
async function acquire(pool: pg.Pool, signal: AbortSignal | undefined): Promise<pg.PoolClient> {
  signal?.throwIfAborted();
  const connecting = pool.connect();
  if (!signal) return connecting;
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort);
  try {
    return await Promise.race([connecting, aborted.promise]);
  } catch (error) {
    connecting.then(
      (connection) => connection.release(),
      () => undefined,
    );
    throw error;
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
