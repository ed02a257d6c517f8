import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { bounds } from '../config/bounds.ts';
import { listenError } from '../config/settings.ts';
import type { Logger } from './logger.ts';
import { shareReading } from './metrics.ts';

/** What a process reports of itself. */
export interface Monitor {
  /** Whether it is ready, and what it lacks. `query` is that of the request. */
  readiness(query: URLSearchParams): Promise<{ readonly isReady: boolean; readonly body: object }>;
  /** In the Prometheus text format. */
  metrics(): Promise<string>;
}

/**
 * The text of metrics, which is made once for many requests: they need no key.
 * @param maxAgeMs shorter in tests
 * @throws Error when it cannot be made
 */
export function sharedMetrics(
  read: () => Promise<string>,
  maxAgeMs: number = bounds.monitoringAge.max,
): Monitor['metrics'] {
  const text = shareReading(read, maxAgeMs);
  return async () => {
    const latest = await text.read();
    if (latest === undefined) throw new Error('The metrics cannot be read.');
    return latest;
  };
}

/** The HTTP listener for probes and Prometheus. */
export interface MonitoringServer {
  readonly url: string;
  close(): Promise<void>;
}

/** Where it listens, and the settings that say so. */
interface MonitoringAddress {
  readonly host: string;
  readonly port: number;
  readonly settings: { readonly host: string; readonly port: string };
  /** What to know when the port is in use. */
  readonly portAdvice?: string;
}

/** The content type of the Prometheus text format. */
const metricsType = 'text/plain; version=0.0.4; charset=utf-8';
/** Probes and Prometheus need a few. */
const maxConnections = 100;
const requestTimeoutMs = 10_000;

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
 * Serves `/livez`, `/healthz`, `/readyz` and `/metrics` without authentication.
 * @throws SettingsError when the port is in use
 */
export async function startMonitoringServer(
  { host, port, settings, portAdvice }: MonitoringAddress,
  monitor: Monitor,
  logger: Logger,
): Promise<MonitoringServer> {
  const replyTo = async ({ method, url = '/' }: IncomingMessage): Promise<Reply> => {
    if (method !== 'GET' && method !== 'HEAD')
      return error(405, 'method_not_allowed', 'Only GET and HEAD are served.');
    const [path = '', query] = url.replace(/#.*$/, '').split('?', 2);
    switch (path.replace(/\/$/, '')) {
      case '/livez':
      case '/healthz':
        return json(200, { status: 'ok', pid: process.pid });
      case '/readyz': {
        const { isReady, body } = await monitor.readiness(new URLSearchParams(query));
        return json(isReady ? 200 : 503, { ...body, pid: process.pid });
      }
      case '/metrics':
        return { status: 200, type: metricsType, body: await monitor.metrics() };
      default:
        return error(404, 'not_found', 'Only /livez, /readyz and /metrics are served.');
    }
  };
  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const reply = await replyTo(request).catch((err: unknown) => {
      logger.error({ err, url: request.url }, 'A request for health or metrics failed.');
      return error(500, 'server_error', 'A server error occurred.');
    });
    response.writeHead(reply.status, { 'content-type': reply.type, 'cache-control': 'no-store' });
    response.end(request.method === 'HEAD' ? undefined : reply.body);
  };
  const server = createServer(
    { requestTimeout: requestTimeoutMs, headersTimeout: requestTimeoutMs },
    (request, response) => void respond(request, response),
  );
  server.maxConnections = maxConnections;
  await new Promise<void>((resolve, reject) => {
    server.once('error', (err) =>
      reject(
        listenError(err, { host, port, settings, ...(portAdvice !== undefined && { portAdvice }) }) ?? err,
      ),
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
