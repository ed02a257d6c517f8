import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { connect, createServer, type AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { expect, it } from '@jest/globals';
import { waitFor } from '../../setup/wait_for.ts';
import { startDelayedStore, startThrottledLine } from './slow_servers.ts';

it('a throttled line delivers all bytes, no faster than its rate', async () => {
  const bytes = Buffer.alloc(300_000, 'rows ');
  const server = createServer((socket) => socket.once('data', () => socket.end(bytes)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const line = await startThrottledLine(`postgres://127.0.0.1:${port}/events`, 1_000_000);
  const { hostname, port: linePort, pathname } = new URL(line.url);
  expect(pathname).toBe('/events');
  const started = performance.now();
  const client = connect(Number(linePort), hostname);
  client.write('select');
  expect((await buffer(client)).equals(bytes)).toBe(true);
  // 300 ms at this rate, of which 100 ms may pass at once; timers may be a millisecond early.
  expect(performance.now() - started).toBeGreaterThan(195);
  expect(line.delivered).toBe(bytes.length);
  await line.close();
  server.close();
});

it('a throttled line survives a client that is killed while it receives', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.write('rows');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const line = await startThrottledLine(`postgres://127.0.0.1:${port}/events`, 1e9);
  const rejections: unknown[] = [];
  const onRejection = (reason: unknown) => rejections.push(reason);
  process.on('unhandledRejection', onRejection);
  const client = connect(Number(new URL(line.url).port), '127.0.0.1');
  await once(client, 'data');
  const connections = () => new Promise((resolve) => server.getConnections((_, count) => resolve(count)));
  client.resetAndDestroy();
  await waitFor(async () => (await connections()) === 0, 'the server loses its client');
  process.off('unhandledRejection', onRejection);
  expect(rejections).toEqual([]);
  await line.close();
  server.close();
});

it('a delayed store forwards requests with their Host header, and counts them', async () => {
  const server = createHttpServer((request, response) => {
    void buffer(request).then((body) => {
      response.writeHead(201, { etag: '"1"' });
      response.end(`${request.method} ${request.url} ${request.headers.host} ${body.toString()}`);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const store = await startDelayedStore(`http://127.0.0.1:${port}`);
  store.delayMs = 50;
  const started = performance.now();
  const response = await fetch(`${store.endpoint}/bucket/key?uploads`, { method: 'PUT', body: 'rows' });
  expect([response.status, response.headers.get('etag')]).toEqual([201, '"1"']);
  expect(await response.text()).toBe(`PUT /bucket/key?uploads ${new URL(store.endpoint).host} rows`);
  expect(performance.now() - started).toBeGreaterThan(48);
  expect(store.requests).toBe(1);
  await store.close();
  server.closeAllConnections();
  server.close();
});
