/** What exportd accepts of an S3 server: each response has a bounded size and time, whatever the server. */
import { subscribe } from 'node:diagnostics_channel';
import type { ClientRequest } from 'node:http';
import type { Readable } from 'node:stream';
import { HttpRequest } from '@smithy/core/protocols';
import { NodeHttpHandler, type NodeHttpHandlerOptions } from '@smithy/node-http-handler';
import { bounds, boundText } from '../config/bounds.ts';
import { limitInterimAnswers, noResponse } from '../network/interim_answers.ts';
import { proxyOf, type Proxies } from '../network/proxies.ts';
import { DestinationError } from './destination.ts';
import { isTransientStatus, notAnS3Server, proxyLoginMissing } from './errors.ts';

/**
 * How many times longer a connection may be silent after a body was written: the system still sends what it has buffered,
 * up to several megabytes, which takes long on a slow line. A server may be silent for as long while it joins the parts of
 * a large file.
 */
const uploadTimeouts = 6;
/** A larger body may be in the system's buffers while the connection seems to be silent. */
const maxQuickBodyBytes = 65_536;
/** How many times longer than a silence a transfer may take, besides the time for its bytes. */
const transferTimeouts = 6;

/**
 * How long a transfer may take, in milliseconds. A server that sends a byte now and then is never silent.
 * @param silenceMs how long the connection may be silent
 */
const transferTimeoutMs = (silenceMs: number, bytes: number): number =>
  silenceMs * transferTimeouts + (bytes / bounds.s3MinRate.max) * 1_000;

// The SDK returns no request to its caller. Requests of other modules that this process sends are no worse for it.
subscribe('http.client.request.created', (message) => {
  const { request } = message as { readonly request: ClientRequest };
  limitInterimAnswers(request, bounds.interimAnswers.max);
});

type Sending = Parameters<NodeHttpHandler['handle']>;
type HandlerOptions = NodeHttpHandlerOptions & { readonly socketTimeout: number };

/**
 * Sends requests, and reads each response completely, except objects. Gives uploads and their completion more time, and
 * lets the SDK repeat no request that timed out.
 */
export class S3RequestHandler extends NodeHttpHandler {
  readonly #uploading: NodeHttpHandler;
  readonly #silenceMs: number;

  constructor(options: HandlerOptions) {
    super(options);
    this.#silenceMs = options.socketTimeout;
    const socketTimeout = options.socketTimeout * uploadTimeouts;
    this.#uploading = new NodeHttpHandler({ ...options, socketTimeout });
  }

  override async handle(
    request: Sending[0],
    options: Sending[1] = {},
  ): ReturnType<NodeHttpHandler['handle']> {
    const bytes = Number(request.headers['content-length'] ?? 0);
    const completes = request.method === 'POST' && request.query.uploadId !== undefined;
    const uploads = completes || bytes > maxQuickBodyBytes;
    const silenceMs = this.#silenceMs * (uploads ? uploadTimeouts : 1);
    const expiry = new AbortController();
    const timer = setTimeout(() => expiry.abort(), transferTimeoutMs(silenceMs, bytes));
    const { abortSignal } = options;
    const signals = [expiry.signal, ...(abortSignal instanceof AbortSignal ? [abortSignal] : [])];
    const bounded = { ...options, abortSignal: AbortSignal.any(signals) };
    try {
      const { response } = await (uploads
        ? this.#uploading.handle(request, bounded)
        : super.handle(request, bounded));
      if (!isObject(request, response.statusCode))
        response.body = await collectResponse(response.body as Readable, response.statusCode);
      return { response };
    } catch (error) {
      // The SDK recognizes timeouts by this name.
      const isTimeout = error instanceof Error && error.name === 'TimeoutError';
      throw isTimeout || (expiry.signal.aborted && !(error instanceof DestinationError))
        ? noResponse()
        : error;
    } finally {
      clearTimeout(timer);
    }
  }
}

/** No server has a name of this domain (RFC 2606). */
const unresolvedHost = 'exportd.invalid';

/** Sends requests through the proxies of the environment, except to what NO_PROXY lists. */
export class ProxiedRequestHandler extends S3RequestHandler {
  readonly #proxied: S3RequestHandler;
  readonly #proxies: Proxies;
  readonly #admit: (host: string) => Promise<void>;
  /** A proxy resolves names itself, so asking again would make nothing safer. */
  readonly #admitted = new Set<string>();

  /**
   * @param direct options of connections to servers
   * @param proxied those of connections to a proxy
   * @param admit rejects for a host that no request may be sent to
   */
  constructor(
    direct: HandlerOptions,
    proxied: HandlerOptions,
    { proxies, admit }: { readonly proxies: Proxies; readonly admit: (host: string) => Promise<void> },
  ) {
    super(direct);
    this.#proxied = new S3RequestHandler(proxied);
    this.#proxies = proxies;
    this.#admit = admit;
  }

  override async handle(request: Sending[0], options?: Sending[1]): ReturnType<NodeHttpHandler['handle']> {
    const { hostname } = request;
    const proxy = proxyOf(request, this.#proxies);
    if (proxy === undefined) return super.handle(request, options);
    if (!this.#admitted.has(hostname)) {
      await this.#admit(hostname);
      this.#admitted.add(hostname);
    }
    try {
      const received = await this.#proxied.handle(request, options);
      // Through a tunnel, a store answers itself.
      const mayBeOfProxy = request.protocol === 'http:' && received.response.statusCode === 407;
      if (mayBeOfProxy && (await this.#asksForLogin())) throw proxyLoginMissing();
      return received;
    } catch (error) {
      throw error instanceof DestinationError ? error : Object.assign(error as Error, { proxy });
    }
  }

  /** Whether the proxy itself asks for a login: no store, which could so accuse the operator, answers for this name. */
  async #asksForLogin(): Promise<boolean> {
    const request = new HttpRequest({
      method: 'HEAD',
      protocol: 'http:',
      hostname: unresolvedHost,
      path: '/',
      headers: { host: unresolvedHost },
    });
    const { response } = await this.#proxied.handle(request);
    return response.statusCode === 407;
  }

  override destroy(): void {
    super.destroy();
    this.#proxied.destroy();
  }
}

/** Whether the body of a response is an object, which its caller reads. */
const isObject = ({ query }: Sending[0], status: number): boolean =>
  query['x-id'] === 'GetObject' && status >= 200 && status < 300;

/** S3 sends none. The SDK takes time that is quadratic in their number. */
const documentType = /<!DOCTYPE/i;

/** The SDK parses them on the main thread. */
function countTags(bytes: Uint8Array): number {
  let count = 0;
  for (const byte of bytes) if (byte === 0x3c) count += 1;
  return count;
}

/** Reads a response. @throws DestinationError `ResponseTooLarge`, or `NotAnS3Server` for a web page */
async function collectResponse(body: Readable, status: number): Promise<Uint8Array> {
  const tooLarge = (bound: string) => (): DestinationError => {
    const transient = status >= 500 || isTransientStatus(status);
    return new DestinationError(
      'ResponseTooLarge',
      `A response of the S3 server has more than ${bound} (status ${status}); check endpoint_url of the destination.`,
      { transient, unavailable: transient && status >= 500 },
    );
  };
  const bytes = await collectBytes(body, bounds.s3Response.max, tooLarge(boundText(bounds.s3Response)));
  if (countTags(bytes) > bounds.s3Tags.max) throw tooLarge(`${boundText(bounds.s3Tags)} tags`)();
  if (documentType.test(bytes.toString('latin1'))) throw notAnS3Server('a request', status);
  return bytes;
}

/** Reads a stream to its end. It is destroyed when it has more than `maxBytes` bytes. @throws what `tooLarge` returns */
async function collectBytes(body: Readable, maxBytes: number, tooLarge: () => Error): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxBytes) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/**
 * Reads an object that should be small. It is not read if its stated length is too large.
 * @param silenceMs how long the connection may be silent
 * @throws what `tooLarge` returns
 */
export async function collectObject(
  { Body, ContentLength }: { readonly Body?: unknown; readonly ContentLength?: number | undefined },
  { maxBytes, silenceMs }: { readonly maxBytes: number; readonly silenceMs: number },
  tooLarge: (bytes: number | undefined) => DestinationError,
): Promise<Buffer> {
  const body = Body as Readable | undefined;
  if (!body) return Buffer.alloc(0);
  if (ContentLength !== undefined && ContentLength > maxBytes) {
    body.destroy();
    throw tooLarge(ContentLength);
  }
  const timer = setTimeout(
    () => body.destroy(noResponse()),
    transferTimeoutMs(silenceMs, ContentLength ?? maxBytes),
  );
  try {
    return await collectBytes(body, maxBytes, () => tooLarge(undefined));
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Passes the chunks of an object through, as long as they arrive with the least average speed. The time that the consumer
 * takes does not count.
 * @throws the error of no response
 */
export async function* paced(
  chunks: AsyncIterable<Buffer>,
  pace: { bytes: number; waitedMs: number },
  silenceMs: number,
): AsyncGenerator<Buffer> {
  const iterator = chunks[Symbol.asyncIterator]();
  try {
    for (;;) {
      const startedAt = performance.now();
      const next = await iterator.next();
      pace.waitedMs += performance.now() - startedAt;
      if (next.done) return;
      pace.bytes += next.value.length;
      if (pace.waitedMs > transferTimeoutMs(silenceMs, pace.bytes)) throw noResponse();
      yield next.value;
    }
  } finally {
    await iterator.return?.();
  }
}
