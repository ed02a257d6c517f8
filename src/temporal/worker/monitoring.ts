import type { Client } from '@temporalio/client';
import type { Registry } from 'prom-client';
import type { Settings } from '../../config/settings.ts';
import type { MemoryBudget } from '../../encoding/memory.ts';
import { rejectionIn, rejectionMessages } from '../../failures/grpc_errors.ts';
import { type OpenFault, readOpenFaults } from '../../failures/operator_faults.ts';
import type { Pool } from '../../journal/database.ts';
import { reportVersions } from '../../projections/registry.ts';
import type { PoolCounts, SourceMonitor } from '../../source/source_connection.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { registerPoolMetrics } from '../../telemetry/metrics.ts';
import { sharedMetrics, startMonitoringServer } from '../../telemetry/monitoring_server.ts';
import { isPolling } from '../clients/executions.ts';
import {
  readSdkMetrics,
  registerCapacityMetrics,
  registerReconcilerMetrics,
  registerS3Metrics,
} from '../metrics.ts';
import { untilAborted } from '../../concurrency/until_aborted.ts';
import type { ReconcileLoops } from '../reconcilers/reconcile_loops.ts';
import type { ActivitySlots } from './activity_slots.ts';
import { sourceFaultOf } from '../../failures/fault_alarm.ts';

/** What a worker needs. Each is `ok` or the problem, without addresses or credentials. */
interface WorkerReadiness {
  readonly status: 'ok' | 'unavailable';
  readonly control_database: string;
  readonly source: string;
  readonly temporal: string;
  /** Whether Temporal gives tasks to this process. */
  readonly polling: string;
  /** What a newer version has stored that this one does not know; null if there is nothing. */
  readonly needs_newer: string | null;
  /** What the operator has to fix; null if the control database cannot be read. */
  readonly operator_faults:
    | readonly Pick<OpenFault, 'incident_id' | 'type' | 'message' | 'opened_at' | 'waiting_runs'>[]
    | null;
}

/** What readiness is read from. */
interface ReadinessDependencies {
  readonly pool: Pool;
  readonly source: Pick<SourceMonitor, 'ping'>;
  readonly client: Client;
  readonly settings: Pick<Settings, 'EXPORTD_TASK_QUEUE_PREFIX'>;
  /** The name of the process among the pollers; undefined until its workers run. */
  readonly identity: () => string | undefined;
  /** Aborted when the process shuts down. */
  readonly stopping: AbortSignal;
}

/** Shorter than the timeout of most probes, in milliseconds. */
const timeoutMs = 4_000;

/** Checks everything that a worker needs, at once. A check that takes too long has failed. */
export async function readWorkerReadiness(dependencies: ReadinessDependencies): Promise<WorkerReadiness> {
  const { pool, source } = dependencies;
  const checkSource = async (): Promise<string> => {
    const signal = AbortSignal.timeout(timeoutMs);
    return untilAborted(source.ping(signal), signal).then(
      () => 'ok',
      (error: unknown) => sourceFaultOf(error).message,
    );
  };
  const [versions, sourceState, { temporal, polling }, faults] = await Promise.all([
    untilAborted(reportVersions(pool), AbortSignal.timeout(timeoutMs)).catch(() => undefined),
    checkSource(),
    readPolling(dependencies),
    readOpenFaults(pool).catch(() => null),
  ]);
  const control_database = versions ? (versions.differs ?? 'ok') : 'The control database cannot be reached.';
  const checks = { control_database, source: sourceState, temporal, polling };
  return {
    status: Object.values(checks).every((state) => state === 'ok') ? 'ok' : 'unavailable',
    ...checks,
    needs_newer: versions?.needs_newer ?? null,
    operator_faults:
      faults?.map(({ incident_id, type, message, opened_at, waiting_runs }) => ({
        incident_id,
        type,
        message,
        opened_at,
        waiting_runs,
      })) ?? null,
  };
}

async function readPolling({
  client,
  settings,
  identity,
  stopping,
}: ReadinessDependencies): Promise<Pick<WorkerReadiness, 'temporal' | 'polling'>> {
  const name = identity();
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const polls = await untilAborted(isPolling(client, settings, name ?? ''), signal);
    if (stopping.aborted) return { temporal: 'ok', polling: 'The worker is shutting down.' };
    if (name === undefined) return { temporal: 'ok', polling: 'The workers have not started yet.' };
    return { temporal: 'ok', polling: polls ? 'ok' : 'Temporal has no poll of this worker.' };
  } catch (error) {
    const rejection = rejectionIn(error);
    const temporal = rejection ? rejectionMessages[rejection] : 'Temporal cannot be reached.';
    return { temporal, polling: temporal };
  }
}

/** What a worker process is monitored by. */
interface MonitoringDependencies extends Omit<ReadinessDependencies, 'settings' | 'source'> {
  readonly metrics: Registry;
  /** Where the SDK serves its metrics; undefined if it does not. */
  readonly sdkMetricsAddress: string | undefined;
  readonly source: SourceMonitor;
  readonly queryPool: PoolCounts;
  readonly slots: Readonly<Record<'export' | 'query' | 'jobs', ActivitySlots>>;
  readonly memory: MemoryBudget;
  readonly reconcileLoops: Pick<ReconcileLoops, 'statistics'>;
  readonly logger: Logger;
  readonly settings: ReadinessDependencies['settings'] &
    Pick<Settings, 'EXPORTD_WORKER_HTTP_HOST' | 'EXPORTD_WORKER_HTTP_PORT' | 'EXPORTD_MEMORY_BUDGET'>;
}

const address = {
  settings: { host: 'EXPORTD_WORKER_HTTP_HOST', port: 'EXPORTD_WORKER_HTTP_PORT' },
  portAdvice: '; each worker of a machine needs its own',
};

/**
 * Registers the metrics of a worker process and serves them with its health, if EXPORTD_WORKER_HTTP_PORT is set. It
 * listens before the worker connects to anything, so that `/readyz` says what a worker that does not start is waiting for.
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
    readiness: async () => {
      const body = await readWorkerReadiness(dependencies);
      return { isReady: body.status === 'ok', body };
    },
    metrics: sharedMetrics(async () => {
      const [own, ofSdk] = await Promise.all([
        metrics.metrics(),
        sdkMetricsAddress === undefined ? '' : readSdkMetrics(sdkMetricsAddress),
      ]);
      return own + ofSdk;
    }),
  };
  const server = await startMonitoringServer({ host, port, ...address }, monitor, logger);
  logger.info({ url: server.url }, 'The worker serves its health and metrics.');
  return async () => {
    stopCounting();
    await server.close();
  };
}
