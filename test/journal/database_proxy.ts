import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/** A proxy to PostgreSQL. */
export interface DatabaseProxy {
  /** The URL of the database through the proxy. */
  readonly url: string;
  /** The number of connections that were opened so far. */
  readonly opened: number;
  /** Simulates a network black hole: no byte of the open connections arrives, and none is reset. New connections work. */
  dropTraffic(): void;
  /** As after a failover, new connections lead to this server; open ones stay where they are. */
  leadTo(databaseUrl: string): void;
  /** Closes all connections and stops listening. */
  close(): Promise<void>;
}

/** Opens a proxy to a database on a free port of 127.0.0.1. */
export async function openDatabaseProxy(databaseUrl: string): Promise<DatabaseProxy> {
  const sockets = new Set<Socket>();
  let target = new URL(databaseUrl);
  let opened = 0;
  const track = (socket: Socket): Socket => {
    sockets.add(socket);
    return socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
  };
  const server = createServer((client) => {
    opened += 1;
    const upstream = track(connect(Number(target.port), target.hostname));
    track(client).pipe(upstream).pipe(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('The proxy has no address.');
  const url = new URL(databaseUrl);
  url.hostname = '127.0.0.1';
  url.port = String(address.port);
  return {
    url: url.href,
    get opened() {
      return opened;
    },
    dropTraffic: () => {
      for (const socket of sockets) socket.unpipe().pause();
    },
    leadTo: (otherUrl) => {
      target = new URL(otherUrl);
    },
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
