import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { listenError } from '../../config/settings.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { WorkerReadiness } from './readiness.ts';

/** What a worker process reports of itself. */
export interface WorkerMonitor {
  readiness(): Promise<WorkerReadiness>;
  /** In the Prometheus text format. */
  metrics(): Promise<string>;
}

/** The HTTP listener of a worker process. */
export interface MonitoringServer {
  readonly url: string;
  close(): Promise<void>;
}

const addressSettings = { host: 'EXPORTD_WORKER_HTTP_HOST', port: 'EXPORTD_WORKER_HTTP_PORT' };
const portAdvice = '; each worker of a machine needs its own';

/** The content type of the Prometheus text format. */
const metricsType = 'text/plain; version=0.0.4; charset=utf-8';

interface Reply {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

const json = (status: number, body: object): Reply => ({
  status,
  type: 'application/json; charset=utf-8',
  body: JSON.stringify(body),
});

const error = (status: number, type: string, detail: string): Reply =>
  json(status, { type, code: type, detail, attr: null });

/**
 * Serves `/livez`, `/readyz` and `/metrics` without authentication. It listens before the worker connects to anything, so
 * that `/readyz` says what a worker that does not start is waiting for.
 * @throws SettingsError when the port is in use
 */
export async function startMonitoringServer(
  { host, port }: { readonly host: string; readonly port: number },
  monitor: WorkerMonitor,
  logger: Logger,
): Promise<MonitoringServer> {
  const replyTo = async ({ method, url = '/' }: IncomingMessage): Promise<Reply> => {
    if (method !== 'GET' && method !== 'HEAD')
      return error(405, 'method_not_allowed', 'A worker serves GET and HEAD.');
    switch (url.replace(/[?#].*$/, '').replace(/\/$/, '')) {
      case '/livez':
        return json(200, { status: 'ok', pid: process.pid });
      case '/readyz': {
        const readiness = await monitor.readiness();
        return json(readiness.status === 'ok' ? 200 : 503, { ...readiness, pid: process.pid });
      }
      case '/metrics':
        return { status: 200, type: metricsType, body: await monitor.metrics() };
      default:
        return error(404, 'not_found', 'A worker serves /livez, /readyz and /metrics.');
    }
  };
  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const reply = await replyTo(request).catch((err: unknown) => {
      logger.error({ err, url: request.url }, 'A request to the worker failed.');
      return error(500, 'server_error', 'A server error occurred.');
    });
    response.writeHead(reply.status, { 'content-type': reply.type, 'cache-control': 'no-store' });
    response.end(request.method === 'HEAD' ? undefined : reply.body);
  };
  const server = createServer((request, response) => void respond(request, response));
  await new Promise<void>((resolve, reject) => {
    server.once('error', (err) =>
      reject(listenError(err, { host, port, settings: addressSettings, portAdvice }) ?? err),
    );
    server.listen(port, host, resolve);
  });
  const { address, port: chosen } = server.address() as AddressInfo;
  return {
    url: `http://${address.includes(':') ? `[${address}]` : address}:${chosen}`,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
