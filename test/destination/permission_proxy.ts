import { request, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { startFakeServer, type ReceivedRequest, type FakeServer } from './fake_server.ts';

/**
 * What the proxy does with a request: denies it, never answers it, ignores its conditions, rejects its conditions as not
 * implemented, or forwards it.
 */
export type Treatment = 'deny' | 'stay silent' | 'ignore conditions' | 'reject conditions' | 'pass';

const errorXml = (code: string): string =>
  `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>No.</Message></Error>`;

const sendError = (response: ServerResponse, status: number, code: string): void => {
  response.writeHead(status, { 'content-type': 'application/xml' }).end(errorXml(code));
};

const conditions = ['if-match', 'if-none-match'];
const isConditional = (headers: IncomingHttpHeaders): boolean => conditions.some((name) => name in headers);

/** Starts a proxy that lacks permissions or features of the S3 server behind it. */
export const startPermissionProxy = (
  endpoint: string,
  treatmentOf: (received: ReceivedRequest) => Treatment,
): Promise<FakeServer> =>
  startFakeServer((received, response) => {
    const treatment = treatmentOf(received);
    if (treatment === 'stay silent') return;
    if (treatment === 'deny') {
      sendError(response, 403, 'AccessDenied');
      return;
    }
    if (treatment === 'reject conditions' && isConditional(received.headers)) {
      sendError(response, 501, 'NotImplemented');
      return;
    }
    // A signed condition cannot be removed, so the proxy pretends that the request succeeded.
    if (treatment === 'ignore conditions' && isConditional(received.headers))
      return void response
        .writeHead(200, { etag: '"1"', 'content-type': 'application/xml' })
        .end(
          received.method === 'POST'
            ? '<CompleteMultipartUploadResult><ETag>"1"</ETag></CompleteMultipartUploadResult>'
            : '',
        );
    forward(endpoint, received, response);
  });

/** Starts a proxy whose responses say that a lifecycle rule deletes each object at a time. */
export const startExpiringProxy = (endpoint: string, expiresAt: Date): Promise<FakeServer> =>
  startFakeServer((received, response) => {
    response.setHeader('x-amz-expiration', `expiry-date="${expiresAt.toUTCString()}", rule-id="old"`);
    forward(endpoint, received, response);
  });

function forward(endpoint: string, received: ReceivedRequest, response: ServerResponse): void {
  const { method, headers, path, body } = received;
  const upstream = request(new URL(path, endpoint), { method, headers }, (upstreamResponse) => {
    response.writeHead(upstreamResponse.statusCode ?? 502, upstreamResponse.headers);
    upstreamResponse.pipe(response);
  });
  upstream.on('error', () => response.destroy());
  upstream.end(body);
}
