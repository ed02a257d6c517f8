import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { expect, it } from '@jest/globals';
import { openReusingSocket } from '../../src/source/copy.ts';

it('reads results in turns, and completely', async () => {
  const sent = Buffer.alloc(8 * 2 ** 20, 'x');
  const server = createServer((connection) => connection.end(sent)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = openReusingSocket();
  let received = 0;
  const turns: number[] = [];
  let turn = 0;
  const countTurn = () => {
    turns.push(turn);
    turn = 0;
  };
  socket.on('data', (bytes: Buffer) => {
    if (turn === 0) setImmediate(countTurn);
    turn += bytes.length;
    received += bytes.length;
  });
  socket.connect((server.address() as AddressInfo).port, '127.0.0.1');
  await once(socket, 'end');
  socket.destroy();
  server.close();
  expect(received).toBe(sent.length);
  expect(Math.max(...turns)).toBeLessThanOrEqual(320 * 1024);
});
