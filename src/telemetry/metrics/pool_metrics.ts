import type pg from 'pg';
import { Gauge, type Registry } from 'prom-client';

/** What is read of a pool. */
export type PoolCounts = Pick<pg.Pool, 'totalCount' | 'idleCount' | 'waitingCount' | 'options'>;

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
