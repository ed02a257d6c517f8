import pg from 'pg';
import { traceStatements } from '../tracing/statements.ts';
import { openReusingSocket } from './reusing_socket.ts';

/**
 * How many milliseconds longer than the server a client waits for a statement to end before it closes the connection.
 */
const responseGraceMs = 15_000;
/**
 * A connection is replaced after this time, even if it is never idle. After a failover it may lead to a standby that no
 * longer follows its primary, which no statement shows.
 */
const maxConnectionSeconds = 300;

/** No connection to the source was free for too long, because others have slow statements. A retry may find one. */
export class SourceBusy extends Error {
  override readonly name = 'SourceBusy';
}

/** What every connection of a pool has in common. */
export interface PoolOptions {
  readonly sourceUrl: string;
  readonly applicationName: string;
  /** In milliseconds. */
  readonly statementTimeoutMs: number;
}

/** Opens a pool of connections, which connects on first use. */
export function openPool(
  options: PoolOptions,
  size: { max: number; connectionTimeoutMillis: number },
): pg.Pool {
  const pool = new pg.Pool({
    connectionString: options.sourceUrl,
    application_name: options.applicationName,
    stream: openReusingSocket,
    ...size,
    idleTimeoutMillis: 30_000,
    maxLifetimeSeconds: maxConnectionSeconds,
    // A peer that disappears is detected by TCP keepalive while idle, and by the query timeout during a statement.
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    query_timeout: options.statementTimeoutMs + responseGraceMs,
  });
  // A broken connection fails the running statement, or is replaced while idle. Without a listener it would also end
  // the process.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  traceStatements(pool, 'source');
  return pool;
}

/** The pool's error when all of its connections stay in use. */
const isPoolExhausted = (error: unknown): boolean =>
  Error.isError(error) && error.message === 'timeout exceeded when trying to connect';

/** Acquires a connection of the pool. An abort ends the wait. @throws SourceBusy */
export async function acquire(pool: pg.Pool, signal: AbortSignal | undefined): Promise<pg.PoolClient> {
  signal?.throwIfAborted();
  const connecting = pool.connect().catch((error: unknown) => {
    throw isPoolExhausted(error)
      ? new SourceBusy(
          `All ${pool.options.max} connections to the source are busy (EXPORTD_SOURCE_CONNECTIONS). Waiting until one is free.`,
        )
      : error;
  });
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
