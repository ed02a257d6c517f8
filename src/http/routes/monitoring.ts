import { Counter, Histogram, type Registry } from 'prom-client';
import type { HttpApp } from '../route_context.ts';
import type { Pool } from '../../journal/database.ts';

/** What the health checks and metrics use. */
export interface HealthChecks {
  readonly pool: Pool;
  /** The number of workers that poll the schedules' task queue; rejects when Temporal cannot be reached. */
  readonly countPollers: () => Promise<number>;
  readonly metrics: Registry;
}

/**
 * Liveness, readiness and metrics, without authentication. Readiness returns the process id, since another server may be
 * listening on the expected port.
 */
export function monitoringRoutes(app: HttpApp, { pool, countPollers, metrics }: HealthChecks): void {
  const seconds = new Histogram({
    name: 'exportd_http_request_duration_seconds',
    help: 'Duration of requests by route.',
    labelNames: ['method', 'route', 'status'],
    registers: [metrics],
  });
  const failures = new Counter({
    name: 'exportd_http_server_errors_total',
    help: 'Responses with status 500 and above.',
    labelNames: ['route', 'status'],
    registers: [metrics],
  });
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.url ?? 'unknown';
    const status = String(reply.statusCode);
    seconds.observe({ method: request.method, route, status }, reply.elapsedTime / 1_000);
    if (reply.statusCode >= 500) failures.inc({ route, status });
    done();
  });

  app.get('/healthz', { schema: { hide: true } }, () => ({ status: 'ok' }));

  app.get('/readyz', { schema: { hide: true } }, async (_request, reply) => {
    const [database, temporal] = await Promise.all([
      checkStatus(async () => {
        await pool.query('select 1');
      }),
      checkStatus(async () => {
        if ((await countPollers()) === 0) throw new Error('No worker polls the task queue.');
      }),
    ]);
    const ready = database === 'ok' && temporal === 'ok';
    const status = ready ? 'ok' : 'unavailable';
    return reply.code(ready ? 200 : 503).send({ status, database, temporal, pid: process.pid });
  });

  app.get('/metrics', { schema: { hide: true } }, async (_request, reply) =>
    reply.type(metrics.contentType).send(await metrics.metrics()),
  );
}

/** Returns `ok` or the problem, without addresses or credentials. */
async function checkStatus(check: () => Promise<void>): Promise<string> {
  try {
    await check();
    return 'ok';
  } catch (error) {
    return error instanceof Error && error.message.startsWith('No worker') ? error.message : 'unreachable';
  }
}
