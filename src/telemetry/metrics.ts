import type pg from 'pg';
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { version } from './version.ts';

/** Gauges of prom-client with the suffix of a counter. `nodejs_active_handles` and its like carry the same numbers. */
const misnamed = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
];

/** Creates the metrics of a process, with those of Node.js: CPU time, memory, event loop lag, garbage collection. */
export function createMetrics(part: 'server' | 'worker'): Registry {
  const metrics = new Registry();
  collectDefaultMetrics({ register: metrics });
  for (const name of misnamed) metrics.removeSingleMetric(name);
  new Gauge({
    name: 'exportd_build_info',
    help: 'Version of this process; always 1.',
    labelNames: ['part', 'version'],
    registers: [metrics],
  }).set({ part, version }, 1);
  return metrics;
}

/** What is read of a pool. */
type PoolCounts = Pick<pg.Pool, 'totalCount' | 'idleCount' | 'waitingCount' | 'options'>;

/** Registers the use of each pool, by its name. */
export function registerPoolMetrics(metrics: Registry, pools: Readonly<Record<string, PoolCounts>>): void {
  const shared = { labelNames: ['pool'], registers: [metrics] };
  const gaugeOf = (name: string, help: string, value: (pool: PoolCounts) => number): void => {
    const gauge: Gauge = new Gauge({
      ...shared,
      name,
      help,
      collect: () => {
        for (const [pool, counts] of Object.entries(pools)) gauge.set({ pool }, value(counts));
      },
    });
  };
  gaugeOf(
    'exportd_pool_used_connections',
    'Connections to PostgreSQL that run a statement or a transaction.',
    ({ totalCount, idleCount }) => totalCount - idleCount,
  );
  gaugeOf('exportd_pool_max_connections', 'Maximum connections of the pool.', ({ options }) => options.max);
  gaugeOf(
    'exportd_pool_waiting_requests',
    'Requests that wait for a connection of the pool.',
    ({ waitingCount }) => waitingCount,
  );
}

/** A value that several metrics of one scrape read. */
interface SharedReading<Value> {
  /** The value; undefined if it cannot be read. */
  read(): Promise<Value | undefined>;
}

/**
 * Reads a value once for all metrics that depend on it, and again when it is older than `maxAgeMs`, however many
 * Prometheus servers scrape.
 */
export function shareReading<Value>(read: () => Promise<Value>, maxAgeMs: number): SharedReading<Value> {
  let latest: Promise<Value | undefined> | undefined;
  /** When the latest reading ended; infinite while it runs. */
  let endedAt = Infinity;
  return {
    read: () => {
      // A reading that runs has an age of minus infinity.
      if (latest && performance.now() - endedAt < maxAgeMs) return latest;
      endedAt = Infinity;
      latest = read()
        .catch(() => undefined)
        .finally(() => {
          endedAt = performance.now();
        });
      return latest;
    },
  };
}
