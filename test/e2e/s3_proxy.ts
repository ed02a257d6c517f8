import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  Agent,
  createServer,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { s3OperationOf, type S3Operation } from './s3_operation.ts';

/** A request through the proxy, with its progress. */
export interface ProxiedRequest extends S3Operation {
  readonly headers: IncomingHttpHeaders;
  /** Bytes of the body received from the client. */
  received: number;
  /** SHA-256 of the body, once it is complete. */
  digest: string | null;
  /** The body; null for parts. */
  text: string | null;
  /** Status of the server's response, once it has responded. */
  status: number | null;
  /** Whether the request has ended, successfully or not. */
  ended: boolean;
}

/** What the client gets instead of the server's response: a broken connection, this response, or what a function sends. */
export type InjectedOutcome =
  | 'broken'
  | { readonly status: number; readonly body: string }
  | ((outgoing: ServerResponse) => void);

interface S3Response {
  readonly status: number;
  /** Alternating names and values, as received. */
  readonly headers: string[];
  readonly body: Buffer;
}

type Body = AsyncIterable<Buffer> | readonly Buffer[];

const xmlHeaders = ['content-type', 'application/xml'];

type RequestHook = (
  request: ProxiedRequest,
) => Promise<InjectedOutcome | undefined> | InjectedOutcome | undefined;

/** Intercepts requests between client and server. Each hook can delay the request by returning a promise. */
export interface Interceptor {
  /** Called before any of the request reaches the server. */
  readonly before?: RequestHook;
  /** Called for each chunk of the body, before it is forwarded. */
  readonly during?: (
    request: ProxiedRequest,
    bytes: number,
  ) => Promise<InjectedOutcome | undefined> | undefined;
  /** Called when the server has responded, before the response is forwarded. */
  readonly after?: RequestHook;
  /** Headers that the server's response has instead of its own, by their names in lower case. */
  readonly headers?: (request: ProxiedRequest) => Readonly<Record<string, string>>;
}

/** A proxy of an S3 server, through which tests observe and disturb requests. */
export interface S3Proxy {
  /** URL to use instead of the server's. */
  readonly endpoint: string;
  /** All requests so far, in order of arrival. */
  readonly requests: readonly ProxiedRequest[];
  /** Adds an interceptor after the existing ones. @returns a function that removes it. */
  intercept(interceptor: Interceptor): () => void;
  /** Removes all interceptors. */
  stopIntercepting(): void;
  close(): Promise<void>;
}

/** Starts a proxy on a free loopback port. It forwards the signed Host header, so signatures stay valid. */
export async function createS3Proxy(endpoint: string): Promise<S3Proxy> {
  const target = new URL(endpoint);
  const agent = new Agent({ keepAlive: true });
  const requests: ProxiedRequest[] = [];
  const interceptors = new Set<Interceptor>();

  const runHooks = async (
    name: 'before' | 'after',
    proxied: ProxiedRequest,
  ): Promise<InjectedOutcome | undefined> => {
    for (const interceptor of interceptors) {
      const outcome = await interceptor[name]?.(proxied);
      if (outcome) return outcome;
    }
    return undefined;
  };

  /** Forwards the body chunk by chunk, with backpressure. */
  const passBody = async (
    proxied: ProxiedRequest,
    body: Body,
    upstream: ReturnType<typeof httpRequest>,
  ): Promise<InjectedOutcome | undefined> => {
    const hash = createHash('sha256');
    const closed = new Promise((resolve) => upstream.once('close', resolve));
    for await (const chunk of body) {
      hash.update(chunk);
      proxied.received += chunk.length;
      for (const { during } of interceptors) {
        const outcome = await during?.(proxied, chunk.length);
        if (outcome) return outcome;
      }
      // A server that responded early or broke the connection accepts no more data; its response decides.
      if (upstream.destroyed || upstream.write(chunk)) continue;
      await Promise.race([new Promise((resolve) => upstream.once('drain', resolve)), closed]);
    }
    proxied.digest = hash.digest('hex');
    return undefined;
  };

  const forward = async (
    proxied: ProxiedRequest,
    incoming: IncomingMessage,
    body: Body,
  ): Promise<InjectedOutcome | S3Response> => {
    const upstream = httpRequest({
      agent,
      host: target.hostname,
      port: target.port,
      method: incoming.method,
      path: incoming.url,
      headers: headersOf(incoming),
      setHost: false,
    });
    // Without this listener, a connection that breaks after the response started would crash the process.
    upstream.on('error', () => undefined);
    const responding = once(upstream, 'response') as Promise<[IncomingMessage]>;
    // Awaited after the body, so that an early response or a broken connection is handled then.
    responding.catch(() => undefined);
    try {
      const outcome = await passBody(proxied, body, upstream);
      if (outcome) {
        upstream.destroy();
        return outcome;
      }
      upstream.end();
      const [response] = await responding;
      const { statusCode = 0, rawHeaders } = response;
      return { status: statusCode, headers: rawHeaders, body: Buffer.concat(await wholeBody(response)) };
    } catch (error) {
      upstream.destroy();
      throw error;
    }
  };

  const respondTo = async (
    proxied: ProxiedRequest,
    incoming: IncomingMessage,
  ): Promise<InjectedOutcome | S3Response> => {
    const body = proxied.operation === 'UploadPart' ? incoming : await wholeBody(incoming);
    if (Array.isArray(body)) proxied.text = Buffer.concat(body).toString();
    const injected = await runHooks('before', proxied);
    if (injected) return injected;
    const forwarded = await forward(proxied, incoming, body);
    if (forwarded === 'broken' || typeof forwarded === 'function' || !('headers' in forwarded))
      return forwarded;
    proxied.status = forwarded.status;
    return (await runHooks('after', proxied)) ?? { ...forwarded, headers: headersFor(proxied, forwarded) };
  };

  const headersFor = (proxied: ProxiedRequest, { headers }: S3Response): string[] => {
    const replaced = [...interceptors].flatMap((hooks) => Object.entries(hooks.headers?.(proxied) ?? {}));
    const names = new Set(replaced.map(([name]) => name));
    const isReplaced = (index: number): boolean =>
      names.has(headers[index - (index % 2)]?.toLowerCase() ?? '');
    return [...headers.filter((_, index) => !isReplaced(index)), ...replaced.flat()];
  };

  const handle = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const proxied: ProxiedRequest = {
      ...s3OperationOf(incoming.method ?? '', incoming.url ?? ''),
      headers: incoming.headers,
      received: 0,
      digest: null,
      text: null,
      status: null,
      ended: false,
    };
    requests.push(proxied);
    const { socket } = incoming;
    try {
      const response = await respondTo(proxied, incoming);
      if (response === 'broken') socket.resetAndDestroy();
      else {
        // Drain the rest of the body, or the client never reads the response.
        incoming.resume();
        if (typeof response === 'function') {
          response(outgoing);
          return;
        }
        outgoing.writeHead(response.status, 'headers' in response ? response.headers : xmlHeaders);
        outgoing.end(response.body);
      }
    } catch {
      socket.destroy();
    } finally {
      proxied.ended = true;
    }
  };

  const server = createServer((incoming, outgoing) => void handle(incoming, outgoing));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('The proxy has no address.');
  return {
    endpoint: `http://127.0.0.1:${String(address.port)}`,
    requests,
    intercept: (interceptor) => {
      interceptors.add(interceptor);
      return () => interceptors.delete(interceptor);
    },
    stopIntercepting: () => interceptors.clear(),
    close: async () => {
      server.closeAllConnections();
      agent.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Reads a whole body. A blocked small request is thus complete even if its client dies while it waits. */
async function wholeBody(incoming: IncomingMessage): Promise<Buffer[]> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk);
  return chunks;
}

/** The received headers without `Expect: 100-continue`, which the proxy handles itself. */
const headersOf = ({ rawHeaders }: IncomingMessage): string[] =>
  rawHeaders.filter((_, index) => rawHeaders[index - (index % 2)]?.toLowerCase() !== 'expect');
