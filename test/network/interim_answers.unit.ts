import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { post } from '../../src/network/proxies.ts';

const hints = Buffer.from('HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'.repeat(100));
/** Answers without an end. */
const server = createServer((socket) => {
  const next = (): void => {
    if (socket.destroyed) return;
    if (socket.write(hints)) setImmediate(next);
    else socket.once('drain', next);
  };
  socket.on('error', () => undefined);
  socket.once('data', next);
});
beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
});
afterAll(() => void server.close());

it('a request whose server sends interim answers without an end fails', async () => {
  const { port } = server.address() as AddressInfo;
  const sent = post(
    `http://127.0.0.1:${port}/`,
    {},
    { headers: {}, body: '{}', signal: new AbortController().signal, maxInterimAnswers: 16 },
  );
  await expect(sent).rejects.toMatchObject({ name: 'NoResponse' });
});
