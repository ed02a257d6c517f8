import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { openReadingSocket } from './reading_socket.ts';

/** How often a cancellation is repeated while its statement goes on. */
const cancelAgainMs = 200;
/** How much longer than the server a client waits for a statement's end before it gives the connection up. */
const answerGraceMs = 15_000;

/** Where the source is, and how much of it may be used; milliseconds. */
export interface SourceConnectionOptions {
  readonly sourceUrl: string;
  readonly applicationName: string;
  readonly maxConnections: number;
  readonly statementTimeoutMs: number;
}

/** One READ ONLY transaction, open while `work` runs. */
export interface ReadTransaction {
  readonly connection: pg.PoolClient;
  /** Sets more settings for the transaction alone. */
  readonly set: (parameters: Readonly<Record<string, string>>) => Promise<void>;
  /** Cancels the statement under way in PostgreSQL; it then fails with `query_canceled`. */
  readonly cancel: () => void;
}

/** The connections to the source. */
export interface SourceConnections {
  /**
   * Runs `work` in a READ ONLY transaction with the session's settings and `parameters` set for it alone, so that
   * nothing depends on what the connection, or a pooler before the server, kept.
   * @throws the signal's reason when it is aborted; the running statement is then cancelled in PostgreSQL
   */
  read<Result>(
    parameters: Readonly<Record<string, string>>,
    signal: AbortSignal | undefined,
    work: (transaction: ReadTransaction) => Promise<Result>,
  ): Promise<Result>;
  close(): Promise<void>;
}

/** Opens the pool of the source (lazily), and a connection beside it so that a full pool can still be cancelled. */
export function connectToSource(options: SourceConnectionOptions): SourceConnections {
  const reading = openPool(options, { max: options.maxConnections, connectionTimeoutMillis: 30_000 });
  const cancelling = openPool(options, { max: 1, connectionTimeoutMillis: 5_000 });
  const sessionSettings = {
    TimeZone: 'UTC',
    jit: 'off',
    statement_timeout: String(options.statementTimeoutMs),
    idle_in_transaction_session_timeout: String(options.statementTimeoutMs),
  };

  const setSession = Object.entries(sessionSettings).map(
    ([name, value]) => `set_config(${pg.escapeLiteral(name)}, ${pg.escapeLiteral(value)}, true)`,
  );
  // Both go in one message: a run has several transactions, and most of what a short one costs are its round trips.
  const beginning = `begin transaction read only; select pg_backend_pid() as pid, ${setSession.join(', ')}`;

  async function begin(connection: pg.PoolClient): Promise<number | undefined> {
    // Of several statements there are several results, which the types of the driver do not tell.
    const results: unknown = await connection.query(beginning);
    const [, begun] = results as readonly (pg.QueryResult<{ pid: number }> | undefined)[];
    return begun?.rows[0]?.pid;
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
    async read(parameters, signal, work) {
      const connection = await acquire(reading, signal);
      const cannotCancel = Promise.withResolvers<never>();
      cannotCancel.promise.catch(() => undefined);
      const ended = Promise.withResolvers<undefined>();
      let working = false;
      let cancellation = Promise.resolve();
      let pid: number | undefined;
      // Repeated, since a request that overtakes the statement is ignored by a server that waits for a command.
      const cancelWhileWorking = async () => {
        while (working) {
          await cancelling.query('select pg_cancel_backend($1)', [pid]);
          await Promise.race([ended.promise, delay(cancelAgainMs, undefined, { ref: false })]);
        }
      };
      const cancel = () => {
        cancellation = cancellation.then(cancelWhileWorking).catch(cannotCancel.reject);
      };
      let broken: Error | undefined;
      try {
        pid = await begin(connection);
        const set = setIn(connection);
        await set(parameters);
        signal?.throwIfAborted();
        signal?.addEventListener('abort', cancel);
        working = true;
        const done = work({ connection, set, cancel }).finally(() => {
          working = false;
          ended.resolve(undefined);
        });
        const result = await Promise.race([done, cannotCancel.promise]);
        // A request still on its way must not reach a later statement.
        await cancellation;
        await connection.query('commit');
        return result;
      } catch (error) {
        await cancellation;
        // Only an error that PostgreSQL itself reported leaves a connection that can be used again.
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
      await Promise.all([reading.end(), cancelling.end()]);
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
    stream: openReadingSocket,
    ...size,
    idleTimeoutMillis: 30_000,
    // A peer that is gone without a word is noticed by probes while idle, and by the missing answer to a statement.
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    query_timeout: options.statementTimeoutMs + answerGraceMs,
  });
  // A broken connection fails the statement under way, or is replaced while idle; without listeners it would end the
  // process as well.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}

/** A connection of the pool; an abort ends the wait for one. */
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
