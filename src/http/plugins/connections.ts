import { AsyncLocalStorage } from 'node:async_hooks';
import type { FastifyInstance } from 'fastify';
import { createKeyedSemaphore } from '../../concurrency/keyed_semaphore.ts';
import { bounds } from '../../config/bounds.ts';
import type { Connection, Pool } from '../../journal/database.ts';

/** A request, as its project and key use the pool. */
interface Request {
  readonly project_id: number;
  readonly key_id: string;
  /** Connections that it has with a permit of its project. */
  connections: number;
}

const requests = new AsyncLocalStorage<Request>();

/** Lets the requests of routes that need a key use connections within the share of their project. */
export function addConnectionShares(app: FastifyInstance): void {
  // The body is parsed in callbacks of the connection, outside of any context.
  app.addHook('preValidation', ({ caller }, _reply, done) => {
    if (caller) {
      const { project_id, key_id } = caller;
      requests.run({ project_id, key_id, connections: 0 }, done);
    } else done();
  });
}

/** The error of the driver, which error handlers know, for a request that no connection was free for. */
const timedOut = (): Error => new Error('timeout exceeded when trying to connect');

/**
 * Makes the requests of projects share the connections of a pool: each project waits in a queue of its own, the one that holds
 * the fewest is next, and none holds more than its bound. The statements of the server itself wait for no share.
 * @param timeoutMs how long a request waits for its turn, in milliseconds
 */
export function shareConnections(pool: Pool, timeoutMs: number): void {
  const permits = createKeyedSemaphore<number, string>({
    total: pool.options.max,
    perKey: bounds.connectionsOfProject.max,
  });
  const releases = new WeakMap<Connection, () => void>();
  const connect = pool.connect.bind(pool) as () => Promise<Connection>;

  const connectInTurn = async (): Promise<Connection> => {
    const request = requests.getStore();
    // One that has a connection waits for no other: those that hold the permits might all wait for it.
    if (!request || request.connections > 0) return connect();
    const release = await permits.acquire(request.project_id, {
      member: request.key_id,
      timeout: { ms: timeoutMs, error: timedOut },
    });
    request.connections += 1;
    const end = (): void => {
      request.connections -= 1;
      release();
    };
    try {
      const connection = await connect();
      releases.set(connection, end);
      return connection;
    } catch (error) {
      end();
      throw error;
    }
  };

  pool.on('release', (_error, connection) => {
    releases.get(connection)?.();
    releases.delete(connection);
  });
  type Connected = (
    error: unknown,
    connection?: Connection,
    release?: (error?: Error | boolean) => void,
  ) => void;
  // The statements of `pool.query` come with a callback.
  pool.connect = ((connected?: Connected) => {
    const connecting = connectInTurn();
    if (!connected) return connecting;
    connecting.then(
      (connection) => {
        connected(undefined, connection, (error) => {
          connection.release(error);
        });
      },
      (error: unknown) => {
        connected(error);
      },
    );
    return undefined;
  }) as Pool['connect'];
}
