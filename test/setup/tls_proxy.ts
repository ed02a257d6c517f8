import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createServer } from 'node:tls';
import type { KeyPair } from './certificates.ts';

/** A proxy that speaks TLS with clients and forwards to a server without TLS. */
export interface TlsProxy {
  readonly port: number;
  close(): Promise<void>;
}

/** Starts a proxy of a server on a free loopback port. */
export async function openTlsProxy(targetUrl: string, { certificate, key }: KeyPair): Promise<TlsProxy> {
  const target = new URL(targetUrl);
  const sockets = new Set<Socket>();
  const track = (socket: Socket): Socket => {
    sockets.add(socket);
    return socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
  };
  const proxy = createServer({ cert: certificate, key }, (client) => {
    const upstream = track(connect(Number(target.port), target.hostname));
    track(client).pipe(upstream).pipe(client);
  });
  proxy.on('tlsClientError', () => undefined);
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const address = proxy.address();
  if (typeof address !== 'object' || address === null) throw new Error('The proxy has no address.');
  return {
    port: address.port,
    close: async () => {
      const closed = new Promise((resolve) => proxy.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
