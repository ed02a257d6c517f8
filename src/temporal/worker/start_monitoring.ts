import type { Registry } from 'prom-client';
import type { Settings } from '../../config/settings.ts';
import type { MemoryBudget } from '../../encoding/memory.ts';
import type { PoolCounts, SourceMonitor } from '../../source/source_connection.ts';
import { registerPoolMetrics } from '../../telemetry/metrics/pool_metrics.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { registerCapacityMetrics } from '../metrics/capacity_metrics.ts';
import { registerReconcilerMetrics } from '../metrics/reconciler_metrics.ts';
import { registerS3Metrics } from '../metrics/s3_metrics.ts';
import { readSdkMetrics } from '../metrics/sdk_metrics.ts';
import type { ReconcileLoops } from '../reconcilers/reconcile_loops.ts';
import type { ActivitySlots } from './activity_slots.ts';
import { startMonitoringServer } from './monitoring_server.ts';
import { readWorkerReadiness, type ReadinessDependencies } from './readiness.ts';

/** What a worker process is monitored by. */
export interface MonitoringDependencies extends Omit<ReadinessDependencies, 'settings' | 'source'> {
  readonly metrics: Registry;
  /** Where the SDK serves its metrics; undefined if it does not. */
  readonly sdkMetricsAddress: string | undefined;
  readonly source: SourceMonitor;
  readonly queryPool: PoolCounts;
  readonly slots: Readonly<Record<'export' | 'query', ActivitySlots>>;
  readonly memory: MemoryBudget;
  readonly reconcileLoops: Pick<ReconcileLoops, 'statistics'>;
  readonly logger: Logger;
  readonly settings: ReadinessDependencies['settings'] &
    Pick<Settings, 'EXPORTD_WORKER_HTTP_HOST' | 'EXPORTD_WORKER_HTTP_PORT' | 'EXPORTD_MEMORY_BUDGET'>;
}

/**
 * Registers the metrics of a worker process and serves them with its health, if EXPORTD_WORKER_HTTP_PORT is set.
 * @returns a function that ends the listener
 * @throws SettingsError when the port is in use
 */
export async function startMonitoring(dependencies: MonitoringDependencies): Promise<() => Promise<void>> {
  const { metrics, sdkMetricsAddress, pool, source, queryPool, slots, memory, logger, settings } =
    dependencies;
  const { EXPORTD_WORKER_HTTP_HOST: host, EXPORTD_WORKER_HTTP_PORT: port } = settings;
  if (port === undefined) return () => Promise.resolve();
  registerPoolMetrics(metrics, {
    control: pool,
    source_pages: source.pools.pages,
    source_counts: source.pools.counts,
    source_checks: source.pools.checks,
    queries: queryPool,
  });
  registerCapacityMetrics(metrics, { slots, memory, settings });
  registerReconcilerMetrics(metrics, () => dependencies.reconcileLoops.statistics());
  const stopCounting = registerS3Metrics(metrics);
  const monitor = {
    readiness: () => readWorkerReadiness(dependencies),
    metrics: async () => {
      const [own, ofSdk] = await Promise.all([
        metrics.metrics(),
        sdkMetricsAddress === undefined ? '' : readSdkMetrics(sdkMetricsAddress),
      ]);
      return own + ofSdk;
    },
  };
  const server = await startMonitoringServer({ host, port }, monitor, logger);
  logger.info({ url: server.url }, 'The worker serves its health and metrics.');
  return async () => {
    stopCounting();
    await server.close();
  };
}
