import { EventEmitter } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** A received request. */
export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** An HTTP server on the loopback address whose responses a test defines. */
export interface FakeServer {
  readonly endpoint: string;
  readonly received: readonly ReceivedRequest[];
  /** Emits `closed` when a connection was closed. */
  readonly connections: EventEmitter;
  close(): Promise<void>;
}

/** Starts a server on a free port. */
export async function startFakeServer(
  respond: (request: ReceivedRequest, response: ServerResponse) => void,
): Promise<FakeServer> {
  const received: ReceivedRequest[] = [];
  const server = createServer((incoming, response) => {
    void text(incoming).then((body) => {
      const request = {
        method: incoming.method ?? '',
        path: incoming.url ?? '',
        headers: incoming.headers,
        body,
      };
      received.push(request);
      respond(request, response);
    });
  });
  const connections = new EventEmitter();
  server.on('connection', (socket) => socket.once('close', () => connections.emit('closed')));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    connections,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
