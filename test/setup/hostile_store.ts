/** An S3 server that is endless, slow, lying or bombing, and how a worker process bears it. */
import { readFile, writeFile } from 'node:fs/promises';
import { get, type ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
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

/** What a worker process used while something was done. */
interface Observed<Result> {
  readonly result: Result;
  /** By how much its resident memory exceeded what it had before, at its peak, in MiB. */
  readonly grownMiB: number;
  /**
   * The longest time without a response of its `/livez`, in milliseconds, less that of the server at the same time: what
   * delays both is the machine.
   */
  readonly silentMs: number;
}

/** Does something, and measures memory and silence of a worker process meanwhile. */
export async function observeWorker<Result>(
  { pid, port }: { readonly pid: number; readonly port: number },
  { baseUrl }: { readonly baseUrl: string },
  work: () => Promise<Result>,
): Promise<Observed<Result>> {
  const memory = async (field: 'VmRSS' | 'VmHWM'): Promise<number> => {
    const status = await readFile(`/proc/${pid}/status`, 'utf8');
    return Number(new RegExp(`^${field}:\\s*(\\d+) kB`, 'm').exec(status)?.[1]) / 1_024;
  };
  // The kernel forgets the peak so far.
  await writeFile(`/proc/${pid}/clear_refs`, '5');
  const before = await memory('VmRSS');
  const done = new AbortController();
  let silentMs = 0;
  const polling = (async () => {
    while (!done.signal.aborted) {
      const [worker, other] = await Promise.all([
        responseTime(`http://127.0.0.1:${port}/livez`),
        responseTime(`${baseUrl}/healthz`),
      ]);
      silentMs = Math.max(silentMs, worker - other);
      await delay(10);
    }
  })();
  try {
    const result = await work();
    return { result, grownMiB: Math.round((await memory('VmHWM')) - before), silentMs };
  } finally {
    done.abort();
    await polling;
  }
}

/** How long a GET takes, in milliseconds. */
async function responseTime(url: string): Promise<number> {
  const startedAt = performance.now();
  await new Promise<void>((resolve, reject) => {
    get(url, { agent: false }, (response) => {
      response.resume().once('end', resolve);
    }).once('error', reject);
  });
  return performance.now() - startedAt;
}
