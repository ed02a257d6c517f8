import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { readOpenFaults } from '../../failures/operator_faults/fault_store.ts';
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
  const faults = new Gauge({
    name: 'exportd_operator_faults',
    help: "Open operator's faults, which runs of all exports wait for.",
    labelNames: ['type'],
    registers: [metrics],
    collect: async () => {
      const open = await openFaults(pool);
      faults.reset();
      for (const { type } of open ?? []) faults.inc({ type });
    },
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
    const [database, temporal, operator_faults] = await Promise.all([
      checkStatus(async () => {
        await pool.query('select 1');
      }),
      checkStatus(async () => {
        if ((await countPollers()) === 0) throw new Error('No worker polls the task queue.');
      }),
      openFaults(pool),
    ]);
    const ready = database === 'ok' && temporal === 'ok';
    const status = ready ? 'ok' : 'unavailable';
    return reply
      .code(ready ? 200 : 503)
      .send({ status, database, temporal, operator_faults, pid: process.pid });
  });

  app.get('/metrics', { schema: { hide: true } }, async (_request, reply) =>
    reply.type(metrics.contentType).send(await metrics.metrics()),
  );
}

/** What the operator has to fix, without the hosts of workers; null if the control database cannot be read. */
const openFaults = (pool: Pool) =>
  readOpenFaults(pool).then(
    (faults) =>
      faults.map(({ type, message, opened_at, waiting_runs }) => ({
        type,
        message,
        opened_at,
        waiting_runs,
      })),
    () => null,
  );

/** Returns `ok` or the problem, without addresses or credentials. */
async function checkStatus(check: () => Promise<void>): Promise<string> {
  try {
    await check();
    return 'ok';
  } catch (error) {
    return error instanceof Error && error.message.startsWith('No worker') ? error.message : 'unreachable';
  }
}
