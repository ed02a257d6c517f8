import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';

/** A server that accepts connections and data, and never responds. */
export interface BlackholeServer {
  readonly endpoint: string;
  /** Number of accepted connections. */
  readonly accepted: () => number;
  /** Closes all connections and the server. */
  close(): Promise<void>;
}

/** Starts the server on a free port of the loopback address. */
export async function startBlackholeServer(): Promise<BlackholeServer> {
  const sockets = new Set<Socket>();
  let accepted = 0;
  const server = createServer((socket) => {
    accepted += 1;
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    socket.resume();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('The server has no address.');
  return {
    endpoint: `http://127.0.0.1:${String(address.port)}`,
    accepted: () => accepted,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
