import { once } from 'node:events';
import {
  connect,
  constants,
  createSecureServer,
  createServer,
  type ClientHttp2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { KeyPair } from './certificates.ts';

/** A gRPC request on its way to Temporal. */
interface ProxiedCall {
  /** `/temporal.api.workflowservice.v1.WorkflowService/CountWorkflowExecutions` and the like. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
}

/** An error that the proxy responds with: a gRPC status code and its message. */
interface GrpcStatus {
  readonly code: number;
  readonly message: string;
}

/** Returns the error to respond with, or undefined to forward the call. */
type CallCheck = (call: ProxiedCall) => GrpcStatus | undefined;

/** TLS of a proxy. With `clientAuthority`, it accepts only clients with a certificate of that authority. */
export interface ProxyTls {
  readonly server: KeyPair;
  readonly clientAuthority?: string;
}

/** A proxy of a Temporal server, with TLS or without, which can reject calls. */
export interface TemporalProxy {
  /** Host and port to use instead of the server's. */
  readonly address: string;
  /** All calls so far, in order of arrival. */
  readonly calls: readonly ProxiedCall[];
  /** Accepts only clients with a certificate of one of these authorities from now on; open connections stay. */
  trustClients(...authorities: readonly string[]): void;
  /** Checks every call from now on; without a check all are forwarded. */
  check(check?: CallCheck): void;
  /** Breaks the connections, and with them the polls that wait for tasks. */
  disconnect(): void;
  close(): Promise<void>;
}

/** Starts a proxy on a free loopback port. */
export async function createTemporalProxy(target: string, tls?: ProxyTls): Promise<TemporalProxy> {
  const calls: ProxiedCall[] = [];
  let rejectionOf: CallCheck = () => undefined;
  const upstreams = new Set<ClientHttp2Session>();
  const sessions = new Set<{ destroy(): void }>();

  const forward = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, upstream: ClientHttp2Session) => {
    const request = upstream.request({ ...headers, ':scheme': 'http', ':authority': target });
    let trailers: IncomingHttpHeaders = {};
    request.on('trailers', (received: IncomingHttpHeaders) => {
      trailers = received;
    });
    request.on('response', (response, flags) => {
      if (stream.destroyed) return;
      // A response without a body has no trailers: its headers end the stream.
      const endStream = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
      stream.respond(response, endStream ? { endStream } : { waitForTrailers: true });
      if (!endStream) request.pipe(stream);
    });
    stream.on('wantTrailers', () => stream.sendTrailers(trailers));
    stream.on('close', () => request.close(constants.NGHTTP2_CANCEL));
    stream.pipe(request);
    request.on('error', () => stream.close(constants.NGHTTP2_INTERNAL_ERROR));
  };

  const secure =
    tls &&
    createSecureServer({
      cert: tls.server.certificate,
      key: tls.server.key,
      ...(tls.clientAuthority !== undefined && {
        ca: tls.clientAuthority,
        requestCert: true,
        rejectUnauthorized: true,
      }),
    });
  const server = secure ?? createServer();
  server.on('session', (session) => {
    const upstream = connect(`http://${target}`);
    upstreams.add(upstream);
    sessions.add(session);
    upstream.on('error', () => session.destroy());
    upstream.on('close', () => session.close());
    session.on('error', () => undefined);
    session.on('close', () => {
      upstream.destroy();
      upstreams.delete(upstream);
      sessions.delete(session);
    });
    session.on('stream', (stream, headers) => {
      stream.on('error', () => undefined);
      const call = { path: headers[':path'] ?? '', headers };
      calls.push(call);
      const rejection = rejectionOf(call);
      if (!rejection) {
        forward(stream, headers, upstream);
        return;
      }
      stream.respond(
        {
          ':status': 200,
          'content-type': 'application/grpc',
          'grpc-status': String(rejection.code),
          'grpc-message': encodeURIComponent(rejection.message),
        },
        { endStream: true },
      );
    });
  });
  const disconnect = () => {
    for (const session of sessions) session.destroy();
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('The proxy has no address.');
  return {
    address: `127.0.0.1:${String(address.port)}`,
    calls,
    trustClients: (...authorities) =>
      secure?.setSecureContext({
        cert: tls?.server.certificate,
        key: tls?.server.key,
        ca: [...authorities],
      }),
    check: (check = () => undefined) => {
      rejectionOf = check;
    },
    disconnect,
    close: async () => {
      disconnect();
      for (const upstream of upstreams) upstream.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Rejects every call, as Temporal does when the namespace or the method is not allowed. */
export const permissionDenied: CallCheck = () => ({ code: 7, message: 'Request unauthorized.' });

/** Rejects calls that do not carry this API key. */
export const requireApiKey =
  (key: string): CallCheck =>
  ({ headers }) =>
    headers.authorization === `Bearer ${key}` ? undefined : { code: 16, message: 'Unauthenticated.' };
