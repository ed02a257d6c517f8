import { request, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { startWebServer, type ReceivedRequest, type WebServer } from './web_server.ts';

/** What a proxy does with a request: refuses it, drops its conditions, says that it cannot keep them, or lets it through. */
export type Treatment = 'deny' | 'ignore conditions' | 'refuse conditions' | 'pass';

const errorXml = (code: string): string =>
  `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>No.</Message></Error>`;

const refuse = (response: ServerResponse, status: number, code: string): void => {
  response.writeHead(status, { 'content-type': 'application/xml' }).end(errorXml(code));
};

const conditions = ['if-match', 'if-none-match'];
const isConditional = (headers: IncomingHttpHeaders): boolean => conditions.some((name) => name in headers);

/** An S3 server with fewer rights or abilities than the one behind it. */
export const startRightsProxy = (
  endpoint: string,
  treatmentOf: (received: ReceivedRequest) => Treatment,
): Promise<WebServer> =>
  startWebServer((received, response) => {
    const treatment = treatmentOf(received);
    if (treatment === 'deny') {
      refuse(response, 403, 'AccessDenied');
      return;
    }
    if (treatment === 'refuse conditions' && isConditional(received.headers)) {
      refuse(response, 501, 'NotImplemented');
      return;
    }
    // A condition that is signed cannot be taken away: the request it stands for is answered as done instead.
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

function forward(endpoint: string, received: ReceivedRequest, response: ServerResponse): void {
  const { method, headers, path, body } = received;
  const upstream = request(new URL(path, endpoint), { method, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  });
  upstream.on('error', () => response.destroy());
  upstream.end(body);
}
