import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Histogram, type Registry } from 'prom-client';

/** The methods that routes have. Metrics name no others, since a client can send any method. */
const knownMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PATCH', 'DELETE', 'OPTIONS']);

/**
 * Counts requests by route. What a client without a key can send adds a bounded number of series: requests that no route
 * has, and those that are not authenticated, are counted without their path.
 */
export function countRequests(app: FastifyInstance, metrics: Registry): void {
  const seconds = new Histogram({
    name: 'exportd_http_request_duration_seconds',
    help: 'Duration of requests by route.',
    labelNames: ['method', 'route', 'status'],
    registers: [metrics],
  });
  app.addHook('onResponse', (request, reply, done) => {
    const method = knownMethods.has(request.method) ? request.method : 'other';
    const labels = { method, route: routeOf(request, reply), status: String(reply.statusCode) };
    seconds.observe(labels, reply.elapsedTime / 1_000);
    done();
  });
}

/** The route of a request for metrics: `unmatched` if no route has its path and method, `unauthenticated` without a key. */
function routeOf({ routeOptions: { url }, caller }: FastifyRequest, { statusCode }: FastifyReply): string {
  if (url === undefined || statusCode === 405) return 'unmatched';
  return url.startsWith('/api/') && caller === null && statusCode !== 200 ? 'unauthenticated' : url;
}
