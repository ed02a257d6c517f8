/** An S3 server that is endless, slow, lying or bombing. */
import type { ServerResponse } from 'node:http';
import type { InjectedOutcome } from '../e2e/s3_proxy.ts';

/** Sends what a hostile server responds. */
type Answer = (response: ServerResponse) => void;

const xml = { 'content-type': 'application/xml' };
const chunk = Buffer.alloc(65_536, ' ');

/** Sends bytes until the client closes the connection; `bytes` at most. It waits for the client, and takes turns. */
function pour(response: ServerResponse, bytes: number, filling = chunk): void {
  let left = bytes;
  const next = (): void => {
    if (response.destroyed) return;
    if (left <= 0) {
      response.end();
      return;
    }
    const part = left < filling.length ? filling.subarray(0, left) : filling;
    left -= part.length;
    if (response.write(part)) setImmediate(next);
    else response.once('drain', () => setImmediate(next));
  };
  next();
}

/** A body that begins with `begin` and never ends. */
export const endless =
  (status: number, begin = '', filling = chunk): Answer =>
  (response) => {
    response.on('error', () => undefined).writeHead(status, xml);
    response.write(begin);
    pour(response, Number.POSITIVE_INFINITY, filling);
  };

/** A body of `bytes` bytes, with the length that the header states. */
export const large =
  (bytes: number, filling = chunk): Answer =>
  (response) => {
    response.on('error', () => undefined).writeHead(200, { 'content-length': bytes, etag: '"large"' });
    pour(response, bytes, filling);
  };

/** A body that never ends, one byte each 50 ms: no connection is ever silent. */
export const dripping =
  (status: number, begin = '', headers: Record<string, string> = xml): Answer =>
  (response) => {
    response.on('error', () => undefined).writeHead(status, headers);
    response.write(begin);
    const timer = setInterval(() => response.write(' '), 50);
    response.once('close', () => clearInterval(timer));
  };

/** Headers that never end, one byte each 50 ms. */
export const drippingHeaders: Answer = (response) => {
  const { socket } = response;
  if (!socket) return;
  socket.on('error', () => undefined).write('HTTP/1.1 200 OK\r\nx-slow: ');
  const timer = setInterval(() => socket.write('x'), 50);
  socket.once('close', () => clearInterval(timer));
};

/** Headers that never end, as fast as the client reads them. */
export const endlessHeaders: Answer = (response) => {
  const { socket } = response;
  if (!socket) return;
  socket.on('error', () => undefined).write('HTTP/1.1 200 OK\r\n');
  const line = Buffer.from('x-header: value\r\n'.repeat(1_000));
  const next = (): void => {
    if (socket.destroyed) return;
    if (socket.write(line)) setImmediate(next);
    else socket.once('drain', next);
  };
  next();
};

/** An S3 error whose code is not one. */
export const errorWithCode = (code: string, status = 403): InjectedOutcome => ({
  status,
  body: `<?xml version="1.0"?><Error><Code>${code}</Code><Message>No.</Message></Error>`,
});
