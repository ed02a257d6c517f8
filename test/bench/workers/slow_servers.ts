import { once } from 'node:events';
import {
  Agent,
  createServer as createHttpServer,
  request,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * Limits a rate of bytes. Each call waits until its bytes may pass.
 * @param burstMs the time for which bytes may pass at once after a pause or late timers
 */
export function createRateLimit(bytesPerSecond: number, burstMs: number): (bytes: number) => Promise<void> {
  let freeAt = 0;
  return async (bytes) => {
    freeAt = Math.max(freeAt, performance.now() - burstMs) + (bytes / bytesPerSecond) * 1_000;
    await delay(Math.max(0, freeAt - performance.now()));
  };
}

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

/** A proxy of an S3 server that delays each request. */
interface DelayedStore {
  readonly endpoint: string;
  /** How long each request waits, 0 at first. */
  delayMs: number;
  /** Requests so far. */
  readonly requests: number;
  close(): Promise<void>;
}

/** Starts the proxy on a free port of the loopback address. It forwards the signed Host header. */
export async function startDelayedStore(endpoint: string): Promise<DelayedStore> {
  const target = new URL(endpoint);
  const agent = new Agent({ keepAlive: true });
  let requests = 0;
  const forward = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    requests += 1;
    await delay(store.delayMs);
    const upstream = request({
      agent,
      host: target.hostname,
      port: target.port,
      method: incoming.method,
      path: incoming.url,
      headers: withoutExpect(incoming.rawHeaders),
      setHost: false,
    });
    const responding = once(upstream, 'response') as Promise<[IncomingMessage]>;
    const [[response]] = await Promise.all([responding, pipeline(incoming, upstream)]);
    outgoing.writeHead(response.statusCode ?? 502, response.rawHeaders);
    await pipeline(response, outgoing);
  };
  const server = createHttpServer((incoming, outgoing) => {
    forward(incoming, outgoing).catch(() => incoming.socket.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const store: DelayedStore = {
    endpoint: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    delayMs: 0,
    get requests() {
      return requests;
    },
    close: async () => {
      server.closeAllConnections();
      agent.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return store;
}

/** Alternating names and values without `Expect: 100-continue`, which this server has answered. */
const withoutExpect = (headers: readonly string[]): string[] =>
  headers.filter((_, index) => headers[index - (index % 2)]?.toLowerCase() !== 'expect');
