import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import type { KeyPair } from './certificates.ts';

/** A proxy that speaks TLS with PostgreSQL's clients, and forwards to a server without TLS. */
export interface PostgresqlTlsProxy {
  /** The URL of the database through the proxy, at this host. */
  urlAt(host: string, parameters?: Readonly<Record<string, string>>): string;
  /** The number of connections whose TLS handshake succeeded. */
  readonly secured: number;
  close(): Promise<void>;
}

/** The client's request for TLS: its length and its code. */
const tlsRequest = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);

/**
 * Starts a proxy on a free loopback port. It closes connections that do not request TLS.
 * @param clientAuthority the authority of the clients' certificates; without it clients need none.
 */
export async function openPostgresqlTlsProxy(
  databaseUrl: string,
  server: KeyPair,
  clientAuthority?: string,
): Promise<PostgresqlTlsProxy> {
  const target = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  let secured = 0;
  const track = (socket: Socket): Socket => {
    sockets.add(socket);
    return socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
  };
  const encryption = createTlsServer({
    cert: server.certificate,
    key: server.key,
    ...(clientAuthority !== undefined && {
      ca: clientAuthority,
      requestCert: true,
      rejectUnauthorized: true,
    }),
  });
  encryption.on('tlsClientError', () => undefined);
  encryption.on('secureConnection', (encrypted) => {
    secured += 1;
    const upstream = track(connect(Number(target.port), target.hostname));
    track(encrypted).pipe(upstream).pipe(encrypted);
  });
  const proxy = createServer((client) => {
    track(client).once('data', (first: Buffer) => {
      if (!first.equals(tlsRequest)) {
        client.destroy();
        return;
      }
      client.write('S');
      encryption.emit('connection', client);
    });
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const address = proxy.address();
  if (typeof address !== 'object' || address === null) throw new Error('The proxy has no address.');
  return {
    urlAt: (host, parameters = {}) => {
      const url = new URL(databaseUrl);
      url.hostname = host;
      url.port = String(address.port);
      for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
      return url.href;
    },
    get secured() {
      return secured;
    },
    close: async () => {
      const closed = new Promise((resolve) => proxy.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
