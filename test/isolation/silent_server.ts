import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';

/** A server that takes every connection and all that is sent to it, and never answers. */
export interface SilentServer {
  readonly endpoint: string;
  /** How many connections it has taken. */
  readonly taken: () => number;
  /** Breaks all connections and takes no more. */
  close(): Promise<void>;
}

/** Starts one on a free port of the loopback address. */
export async function startSilentServer(): Promise<SilentServer> {
  const sockets = new Set<Socket>();
  let taken = 0;
  const server = createServer((socket) => {
    taken += 1;
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
    taken: () => taken,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
