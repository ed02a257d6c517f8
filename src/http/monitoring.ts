import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { z } from 'zod';
import { rejectionIn, rejectionMessages } from '../failures/grpc_errors.ts';
import { readOpenFaults } from '../failures/operator_faults.ts';
import type { Pool } from '../journal/database.ts';
import type { HttpApp } from './command_service.ts';

/** What the health checks and metrics use. */
interface HealthChecks {
  readonly pool: Pool;
  /** The number of workers that poll the schedules' task queue; rejects when Temporal cannot be reached. */
  readonly countPollers: () => Promise<number>;
  readonly metrics: Registry;
}

/** What the server has to be ready for. A server without workers takes commands, which are applied later. */
const readinessQuery = z.object({ for: z.enum(['read', 'queue', 'act']).default('queue') });

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

  // The second name is the one that workers have too.
  for (const path of ['/healthz', '/livez'])
    app.get(path, { schema: { hide: true } }, () => ({ status: 'ok', pid: process.pid }));

  app.get('/readyz', { schema: { hide: true, querystring: readinessQuery } }, async (request, reply) => {
    const [abilities, operator_faults] = await Promise.all([
      readAbilities(pool, countPollers),
      openFaults(pool),
    ]);
    const isReady = abilities[request.query.for] === 'ok';
    const status = abilities.act === 'ok' ? 'ok' : abilities.queue === 'ok' ? 'degraded' : 'unavailable';
    return reply.code(isReady ? 200 : 503).send({ status, ...abilities, operator_faults, pid: process.pid });
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

/**
 * What the server can do, in rising order: `read` and answer from the control database, `queue` commands, and have
 * workers `act` on them. Each is `ok` or the problem, without addresses or credentials.
 */
async function readAbilities(pool: Pool, countPollers: HealthChecks['countPollers']) {
  const [isReadable, pollers] = await Promise.all([
    pool.query('select 1').then(
      () => true,
      () => false,
    ),
    countPollers().catch((error: unknown) => {
      const rejection = rejectionIn(error);
      return rejection ? rejectionMessages[rejection] : 'Temporal cannot be reached.';
    }),
  ]);
  const read = isReadable ? 'ok' : 'The control database cannot be reached.';
  const queue = read !== 'ok' ? read : typeof pollers === 'string' ? pollers : 'ok';
  const act = queue !== 'ok' ? queue : pollers === 0 ? 'No worker polls the task queue.' : 'ok';
  return { read, queue, act };
}
