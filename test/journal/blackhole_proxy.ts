import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/** A proxy to PostgreSQL that can simulate a network black hole: no byte arrives, and no connection is reset. */
export interface BlackholeProxy {
  /** The URL of the database through the proxy. */
  readonly url: string;
  /** Drops all further traffic of the open connections. New connections work. */
  dropTraffic(): void;
  /** Closes all connections and stops listening. */
  close(): Promise<void>;
}

/** Opens a proxy to a database on a free port of 127.0.0.1. */
export async function openBlackholeProxy(databaseUrl: string): Promise<BlackholeProxy> {
  const target = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  const track = (socket: Socket): Socket => {
    sockets.add(socket);
    return socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
  };
  const server = createServer((client) => {
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
    dropTraffic: () => {
      for (const socket of sockets) socket.unpipe().pause();
    },
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
