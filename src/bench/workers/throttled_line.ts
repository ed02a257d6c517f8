import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { createRateLimit } from './rate_limit.ts';

/** A line to PostgreSQL, each connection of which delivers a limited number of bytes per second. */
export interface ThrottledLine {
  /** The URL of the database through the line. */
  readonly url: string;
  /** Bytes that were delivered so far, over all connections. */
  readonly delivered: number;
  close(): Promise<void>;
}

/** Late timers of a busy machine must not slow the line. */
const burstMs = 100;

/** Starts the line on a free port of the loopback address. What clients send is not limited. */
export async function startThrottledLine(
  databaseUrl: string,
  bytesPerSecond: number,
): Promise<ThrottledLine> {
  const target = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  let delivered = 0;
  const track = (socket: Socket): Socket => {
    sockets.add(socket);
    return socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
  };
  const deliver = async (upstream: Socket, client: Socket): Promise<void> => {
    const limit = createRateLimit(bytesPerSecond, burstMs);
    // Not `once` of node:events, which rejects when the connection breaks.
    const closed = new Promise((resolve) => client.once('close', resolve));
    for await (const chunk of upstream as AsyncIterable<Buffer>) {
      await limit(chunk.length);
      delivered += chunk.length;
      if (client.destroyed) break;
      if (client.write(chunk)) continue;
      await Promise.race([new Promise((resolve) => client.once('drain', resolve)), closed]);
    }
    client.end();
  };
  const server = createServer((socket) => {
    const client = track(socket);
    const upstream = track(connect(Number(target.port) || 5_432, target.hostname));
    client.pipe(upstream);
    // PostgreSQL stops sending to a client that is gone.
    client.once('close', () => upstream.destroy());
    deliver(upstream, client).catch(() => client.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(databaseUrl);
  url.hostname = '127.0.0.1';
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    get delivered() {
      return delivered;
    },
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
