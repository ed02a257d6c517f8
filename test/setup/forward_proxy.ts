import { once } from 'node:events';
import { createServer, request, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';

/** A forward proxy, which knows names that do not resolve elsewhere. */
export interface ForwardProxy {
  readonly url: string;
  /** The method and the host of each request that it got. */
  readonly requests: readonly string[];
  /** The header `Proxy-Authorization` of each, or nothing. */
  readonly logins: readonly string[];
  close(): Promise<void>;
}

/**
 * Starts a proxy on a free loopback port.
 * @param ports the loopback port of each host that it connects to
 * @param refusal the status with which it refuses all, if it does
 */
export async function startForwardProxy(
  ports: Readonly<Record<string, number>>,
  refusal?: number,
): Promise<ForwardProxy> {
  const requests: string[] = [];
  const logins: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((incoming, response: ServerResponse) => {
    const { method = '', url = '', headers } = incoming;
    const { host, hostname, pathname, search } = new URL(url);
    requests.push(`${method} ${host}`);
    logins.push(headers['proxy-authorization'] ?? '');
    const port = ports[hostname];
    if (refusal !== undefined || port === undefined) {
      incoming.resume();
      response.writeHead(refusal ?? 502).end();
      return;
    }
    const upstream = request(
      { host: '127.0.0.1', port, method, path: pathname + search, headers, setHost: false },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
        answer.pipe(response);
      },
    );
    upstream.on('error', () => response.destroy());
    incoming.pipe(upstream);
  });
  server.on('connect', (incoming, client: Socket) => {
    const [hostname = ''] = (incoming.url ?? '').split(':');
    requests.push(`CONNECT ${incoming.url ?? ''}`);
    logins.push(incoming.headers['proxy-authorization'] ?? '');
    const port = ports[hostname];
    if (refusal !== undefined || port === undefined) {
      client.end(`HTTP/1.1 ${refusal ?? 502} No\r\n\r\n`);
      return;
    }
    const upstream = connect(port, '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connected\r\n\r\n');
      client.pipe(upstream).pipe(client);
    });
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('The proxy has no address.');
  return {
    url: `http://127.0.0.1:${address.port}`,
    requests,
    logins,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      server.closeAllConnections();
      await closed;
    },
  };
}
