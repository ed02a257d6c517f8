import { Gauge, type Registry } from 'prom-client';
import * as z from 'zod';
import { rejectionIn, rejectionMessages } from '../failures/grpc_errors.ts';
import { type OpenFault, readOpenFaults } from '../failures/operator_faults.ts';
import type { Pool } from '../journal/database.ts';
import { reportVersions } from '../projections/registry.ts';
import { shareReading } from '../telemetry/metrics.ts';
import { type Monitor, sharedMetrics } from '../telemetry/monitoring_server.ts';
import type { Authentication } from './plugins/authentication.ts';
import type { HttpApp } from './route_context.ts';

/** What the health checks and metrics read. */
interface HealthChecks {
  readonly pool: Pool;
  /** The number of workers that poll the schedules' task queue; rejects when Temporal cannot be reached. */
  readonly countPollers: () => Promise<number>;
  readonly metrics: Registry;
  /** How old the text of the metrics may be, in milliseconds; for tests. */
  readonly maxAgeMs?: number;
}

/** Who reads what the operator has to fix. The monitoring port is the operator's, the API's port is open to all. */
type Reader = 'operator' | 'anyone';

/** What a server reports of itself. */
export interface ServerMonitor extends Monitor {
  /** As of a `Monitor`. `anyone` reads only the types of the operator's faults: messages name relations. */
  readiness(query: URLSearchParams, reader?: Reader): ReturnType<Monitor['readiness']>;
}

/** What the server has to be ready for. A server without workers takes commands, which are applied later. */
const readinessQuery = z.object({ for: z.enum(['read', 'queue', 'act']).default('queue') });

/**
 * Reports the health and the metrics of a server. However many clients ask, each is read once at a time: they need no key.
 */
export function createServerMonitor({ pool, countPollers, metrics, maxAgeMs }: HealthChecks): ServerMonitor {
  const faults = new Gauge({
    name: 'exportd_operator_faults',
    help: "Open operator's faults, which runs of all exports wait for; with the server that is out, if it is one.",
    labelNames: ['type', 'dependency'],
    registers: [metrics],
    collect: async () => {
      const open = await openFaults(pool);
      faults.reset();
      for (const { type, dependency } of open ?? []) faults.inc({ type, dependency: dependency ?? '' });
    },
  });
  const state = shareReading(async () => {
    const operator_faults = await openFaults(pool);
    return { abilities: await readAbilities(pool, countPollers, operator_faults), operator_faults };
  }, 0);
  return {
    readiness: async (query, reader = 'operator') => {
      const wanted = readinessQuery.safeParse(Object.fromEntries(query)).data?.for ?? 'queue';
      const read = await state.read();
      if (!read) throw new Error('The state of the server cannot be read.');
      const { abilities } = read;
      const fieldsOf = reader === 'operator' ? shownFault : publicFault;
      const operator_faults = read.operator_faults?.map(fieldsOf) ?? null;
      const status = abilities.act === 'ok' ? 'ok' : abilities.queue === 'ok' ? 'degraded' : 'unavailable';
      return { isReady: abilities[wanted] === 'ok', body: { status, ...abilities, operator_faults } };
    },
    metrics: sharedMetrics(() => metrics.metrics(), maxAgeMs),
  };
}

/**
 * Liveness and readiness, without authentication. Metrics have a port of their own: a proxy of this machine passes on whatever
 * others request. Readiness returns the process id, since another server may be listening on the expected port.
 * @param authentication says who sends a request, if it has a key or a session: an administrator reads the operator's messages
 */
export function monitoringRoutes(
  app: HttpApp,
  monitor: Pick<ServerMonitor, 'readiness'>,
  authentication: Pick<Authentication, 'findCaller'>,
): void {
  // The second name is the one that workers have too.
  for (const path of ['/healthz', '/livez'])
    app.get(path, { schema: { hide: true } }, () => ({ status: 'ok', pid: process.pid }));

  app.get('/readyz', { schema: { hide: true, querystring: readinessQuery } }, async (request, reply) => {
    // Readiness answers also while the control database, which has the keys, does not.
    const caller = await authentication.findCaller(request).catch(() => undefined);
    const reader = caller?.scopes.includes('installation:admin') === true ? 'operator' : 'anyone';
    const { isReady, body } = await monitor.readiness(new URLSearchParams(request.query), reader);
    return reply.code(isReady ? 200 : 503).send({ ...body, pid: process.pid });
  });
}

/** What the operator has to fix; null if the control database cannot be read. */
const openFaults = (pool: Pool): Promise<readonly OpenFault[] | null> =>
  readOpenFaults(pool).catch(() => null);

/** What the operator reads of a fault: all but the hosts of workers. */
const shownFault = ({ incident_id, type, message, opened_at, waiting_runs }: OpenFault) => ({
  incident_id,
  type,
  message,
  opened_at,
  waiting_runs,
});

/** What anyone may read of a fault. */
const publicFault = ({ type, opened_at }: OpenFault): Pick<OpenFault, 'type' | 'opened_at'> => ({
  type,
  opened_at,
});

/**
 * What the server can do, in rising order: `read` and answer from the control database, `queue` commands, and have
 * workers `act` on them. Each is `ok` or the problem, without addresses or credentials.
 */
async function readAbilities(
  pool: Pool,
  countPollers: HealthChecks['countPollers'],
  faults: readonly OpenFault[] | null,
) {
  const [versions, pollers] = await Promise.all([
    reportVersions(pool).catch(() => undefined),
    countPollers().catch((error: unknown) => {
      const rejection = rejectionIn(error);
      return rejection ? rejectionMessages[rejection] : 'Temporal cannot be reached.';
    }),
  ]);
  const read = versions ? (versions.differs ?? 'ok') : 'The control database cannot be reached.';
  const queue = read !== 'ok' ? read : typeof pollers === 'string' ? pollers : 'ok';
  // Temporal counts a worker that is gone for a while: that it no longer reports is known earlier.
  const silent = faults?.find(({ dependency }) => dependency === 'workers')?.message;
  const idle = pollers === 0 ? 'No worker polls the task queue.' : silent;
  const act = queue === 'ok' ? (idle ?? 'ok') : queue;
  return { read, queue, act, needs_newer: versions?.needs_newer ?? null };
}
