import { once } from 'node:events';
import { Agent, createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { pipeline } from 'node:stream/promises';

/** A proxy of an S3 server that delays each request. */
export interface DelayedStore {
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
  const server = createServer((incoming, outgoing) => {
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
