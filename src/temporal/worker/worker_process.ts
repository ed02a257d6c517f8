import { DefaultLogger, type LogLevel, Runtime, type Logger as TemporalLogger } from '@temporalio/worker';
import closeWithGrace from 'close-with-grace';
import { createScheduleActivities } from '../../../activities/schedule.ts';
import { createJobActivities } from '../../../activities/jobs.ts';
import { createExportActivities, createRunActivities } from '../../../activities/run.ts';
import { createMaintenanceActivities, createMaintenancePlanner } from '../../../activities/maintenance.ts';
import { createQueryActivities, createQueryOutcomeActivities } from '../../../activities/query.ts';
import {
  configRules,
  createCapabilities,
  createFaultSender,
  createJobHandlers,
  createTargets,
  keepers,
} from '../capabilities.ts';
import { createKeyRing, type KeyRing } from '../../config/key_ring.ts';
import { type Settings, SettingsError } from '../../config/settings.ts';
import { createPolicies } from '../../decisions/policies.ts';
import { createRunRecorder } from '../../decisions/run_recorder.ts';
import { createWaitingRuns } from '../../decisions/waiting_runs.ts';
import { createMayShrink, createSelectionReader } from '../../destination/config_versions.ts';
import { createDestinationOpener, createLocationOpener } from '../../destination/open_destination.ts';
import { createMemoryBudget } from '../../encoding/memory.ts';
import { createPerExportLimit } from '../../export/per_export_limit.ts';
import { createSmallRunCompleter } from '../../export/complete_small_run.ts';
import { createRunTurns } from '../../export/run_turns.ts';
import { createPool } from '../../journal/database.ts';
import { openJournal } from '../../projections/registry.ts';
import { createSource } from '../../source/postgres_source.ts';
import { createLogger, type Logger } from '../../telemetry/logger.ts';
import { createMetrics } from '../../telemetry/metrics.ts';
import { startTracing } from '../../telemetry/tracing.ts';
import { createExecutionLists } from '../clients/executions.ts';
import { createWorkflowClients } from '../clients/workflow_clients.ts';
import { clientOfWorkers, connectWorkers, createClient } from '../connections.ts';
import { createRunMetrics, freeLoopbackAddress } from '../metrics.ts';
import { createProblemReporter } from '../problems.ts';
import { createReconcileLoops } from '../reconcilers/reconcile_loops.ts';
import { reconcilers } from '../reconcilers/registry.ts';
import { createSignalRecovery } from '../reconcilers/signal_recovery.ts';
import { ensureSearchAttributes } from '../search_attributes.ts';
import { createExportSlots, createJobSlots } from './activity_slots.ts';
import { createWorkers } from './workers.ts';
import { loadWorkflowBundle } from './bundle.ts';
import { startMonitoring } from './monitoring.ts';
import { untilAborted } from '../../concurrency/until_aborted.ts';
import { createQueryActivityDependencies } from './query_worker.ts';
import { createEncoderPool } from '../../encoding/encoder_pool.ts';
import { createOutages } from '../../failures/outages.ts';
import { createBackfillActivities } from '../../../activities/backfill.ts';
import { createRunStarter } from '../clients/run_starter.ts';
import { createFaultAlarm } from '../../failures/fault_alarm.ts';

const levels = { TRACE: 'trace', DEBUG: 'debug', INFO: 'debug', WARN: 'warn', ERROR: 'error' } as const;

/**
 * Writes the SDK's log to the process's log. The SDK's INFO lines, one for every state of a worker and every workflow that
 * ends, are logged as debug; others than these are not even formatted.
 */
const temporalLogger = (logger: Logger): TemporalLogger =>
  new DefaultLogger(logger.isLevelEnabled('debug') ? 'DEBUG' : 'WARN', ({ level, message, meta }) => {
    logger[levels[level satisfies LogLevel]]({ temporal: formatErrors(meta) }, message);
  });

/** Formats errors as one line. Errors of workflows come from another realm, so they are recognized by shape. */
const formatErrors = (meta: Record<string | symbol, unknown> | undefined): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(meta ?? {}).map(([name, value]) => [name, isErrorLike(value) ? describe(value) : value]),
  );

interface ErrorLike {
  readonly name: unknown;
  readonly message: unknown;
  readonly cause?: unknown;
}

const isErrorLike = (value: unknown): value is ErrorLike =>
  typeof value === 'object' && value !== null && 'message' in value && 'name' in value;

const describe = ({ name, message, cause }: ErrorLike): string =>
  `${String(name)}: ${String(message)}${isErrorLike(cause) ? ` (${describe(cause)})` : ''}`;

/** Units and suffixes as Prometheus has them: `temporal_request_latency_seconds`, `temporal_request_total`. */
const metricNames = { countersTotalSuffix: true, unitSuffix: true, useSecondsForDurations: true };

/**
 * Installs the SDK's native runtime. Call it once per process, before any other use of the SDK.
 * @param metricsAddress where the SDK serves its own metrics, `host:port`; undefined if they are not served
 */
export function installRuntime(logger: Logger, metricsAddress?: string): void {
  Runtime.install({
    logger: temporalLogger(logger),
    telemetryOptions: {
      logging: { filter: { core: 'WARN', other: 'ERROR' }, forward: {} },
      ...(metricsAddress !== undefined && {
        metrics: { prometheus: { bindAddress: metricsAddress, ...metricNames }, attachServiceName: false },
      }),
    },
    // The process handles signals: it stops the workers first, then their dependencies.
    shutdownSignals: [],
  });
}

/** Connections to the control database. Appends are short, and more of them would only wait for the streams' locks. */
const maxControlConnections = 20;

/**
 * Runs a worker process: workflows, activities and the reconciler. It logs to standard error and writes nothing to
 * standard output. It ends on SIGTERM or SIGINT, which it handles before it first waits, and throws errors that a restart
 * may fix.
 */
export async function runWorker(settings: Settings): Promise<void> {
  const logger = createLogger('worker', settings);
  const keyRing = createKeyRing(settings.EXPORTD_ENCRYPTION_KEYS);
  if (!keyRing.opens)
    throw new SettingsError(
      'EXPORTD_ENCRYPTION_KEYS starts with a public key, which only encrypts: a worker needs the private key of the pair.',
    );
  const stopping = new AbortController();
  const ended = Promise.withResolvers<undefined>();
  closeWithGrace(
    { delay: settings.EXPORTD_SHUTDOWN_TIMEOUT, logger: false },
    async ({ err, signal: received }) => {
      if (err) logger.fatal({ err }, 'Unhandled error in the worker.');
      else logger.info({ signal: received }, 'The worker is shutting down.');
      stopping.abort();
      await ended.promise;
    },
  );
  try {
    const sdkMetricsAddress =
      settings.EXPORTD_WORKER_HTTP_PORT === undefined ? undefined : await freeLoopbackAddress();
    installRuntime(logger, sdkMetricsAddress);
    await serve(settings, logger, keyRing, { signal: stopping.signal, sdkMetricsAddress });
  } catch (error) {
    if (!stopping.signal.aborted) throw error;
  } finally {
    ended.resolve(undefined);
  }
}

async function serve(
  settings: Settings,
  logger: Logger,
  keyRing: KeyRing,
  {
    signal,
    sdkMetricsAddress,
  }: { readonly signal: AbortSignal; readonly sdkMetricsAddress: string | undefined },
): Promise<void> {
  const tracing = await startTracing('worker', settings, logger);
  const pool = createPool(settings.DATABASE_URL, {
    max: maxControlConnections,
    connectTimeoutMs: settings.EXPORTD_CONTROL_CONNECT_TIMEOUT,
    statementTimeoutMs: settings.EXPORTD_CONTROL_STATEMENT_TIMEOUT,
    preparesStatements: true,
  });
  const temporal = await createClient(settings);
  const { client } = temporal;
  const source = createSource({
    sourceUrl: settings.SOURCE_DATABASE_URL,
    primaryUrl: settings.SOURCE_PRIMARY_DATABASE_URL,
    settings,
  });
  const encoders = createEncoderPool({
    threads: settings.EXPORTD_ENCODER_THREADS,
    unusedBlockBytes: settings.EXPORTD_MEMORY_BUDGET / settings.EXPORTD_ENCODER_THREADS,
  });
  const metrics = createMetrics('worker');
  const runMetrics = createRunMetrics(metrics, settings);
  const capabilities = createCapabilities({ client, pool, keyRing, logger, settings });
  const journal = openJournal(pool, {
    onCommitted: runMetrics.onCommitted,
    subscribers: capabilities.subscribers,
  });
  const readSelection = createSelectionReader(pool);
  const control = {
    journal,
    client,
    policies: createPolicies(settings, configRules),
    recorder: createRunRecorder(journal),
    source,
    readSelection,
    ...createWorkflowClients(client, pool, settings),
    logger,
    settings,
  };
  const outages = createOutages(pool, settings, logger);
  const { circuits } = outages;
  const exportSlots = createExportSlots(settings);
  const sender = createFaultSender(settings);
  const turns = createRunTurns();
  const capacity = { slots: exportSlots, turns };
  const faultAlarm = createFaultAlarm(pool, settings, logger, sender, source, capacity);
  const problems = createProblemReporter(pool, settings, logger);
  const exporting = {
    slots: exportSlots,
    outages,
    perExportLimit: createPerExportLimit(settings.EXPORTD_SLOTS_PER_EXPORT ?? Infinity),
    recorder: control.recorder,
    source,
    encoders,
    memory: createMemoryBudget(settings.EXPORTD_MEMORY_BUDGET),
    readSelection,
    openDestination: createDestinationOpener(pool, keyRing, settings, circuits),
    openLocation: createLocationOpener(pool, keyRing, settings, {
      retryBudgetMs: settings.EXPORTD_S3_RETRY_BUDGET,
      circuits,
    }),
    mayShrink: createMayShrink(pool),
    targets: createTargets(journal, control),
    onStage: runMetrics.onStage,
    logger,
    settings,
  };
  const queries = createQueryActivityDependencies({ pool, logger, settings, metrics });
  const handlers = createJobHandlers({
    pool,
    keyRing,
    settings,
    logger,
    journal,
    source,
    readSelection,
    openLocation: exporting.openLocation,
    policies: control.policies,
    backfills: control.backfills,
  });
  const jobSlots = createJobSlots();
  const executionLists = createExecutionLists(client, settings);
  let workers: Awaited<ReturnType<typeof createWorkers>> | undefined;
  const reconcileLoops = createReconcileLoops(
    {
      ...control,
      isIdle: () => workers?.isIdle() ?? false,
      executionLists,
      openLocation: createLocationOpener(pool, keyRing, settings, { circuits }),
      signalRecovery: createSignalRecovery(client, executionLists, journal, control.policies),
      ensureSearchAttributes: (aborted) =>
        problems.watch(() => ensureSearchAttributes(temporal, settings, aborted)),
    },
    { ...reconcilers, ...capabilities.reconcilers },
  );
  let identity: string | undefined;
  let stopMonitoring = () => Promise.resolve();
  try {
    // First, so that it says what the worker is waiting for.
    stopMonitoring = await startMonitoring({
      metrics,
      sdkMetricsAddress,
      pool,
      source,
      client,
      queryPool: queries.pool,
      slots: { export: exportSlots, query: queries.slots, jobs: jobSlots },
      memory: exporting.memory,
      reconcileLoops,
      identity: () => identity,
      stopping: signal,
      logger,
      settings,
    });
    const workflowBundle = await loadWorkflowBundle(settings, signal);
    // Before connecting: Temporal may be what the operator has to fix.
    faultAlarm.start();
    // Before the workers connect: their library reports all failures alike.
    await untilAborted(
      problems.retry(() => ensureSearchAttributes(temporal, settings, signal), signal),
      signal,
    );
    const connection = await untilAborted(
      problems.retry(() => connectWorkers(settings), signal),
      signal,
    );
    const deciding = {
      ...control,
      runs: createRunStarter(await clientOfWorkers(connection, settings), settings, { takesFirstTask: true }),
    };
    const creatingWorkers = createWorkers({
      connection,
      workflowBundle,
      activities: {
        control: {
          ...createScheduleActivities(deciding),
          ...createBackfillActivities(deciding),
          ...createRunActivities({
            ...deciding,
            outages,
            completeSmallRun: createSmallRunCompleter(exporting),
            turns,
          }),
          ...createMaintenancePlanner(control),
          ...createQueryOutcomeActivities(queries),
        },
        export: createExportActivities(exporting),
        maintenance: {
          ...createMaintenanceActivities({
            ...control,
            openLocation: createLocationOpener(pool, keyRing, settings, { circuits }),
            keepers,
          }),
          ...capabilities.activities,
        },
        query: createQueryActivities(queries),
        jobs: createJobActivities({ pool, handlers, slots: jobSlots, settings, logger }),
      },
      exportSlots,
      waitingRuns: createWaitingRuns(pool, settings.EXPORTD_EXPORT_SLOTS),
      capabilitySlots: capabilities.activitySlots,
      querySlots: queries.slots,
      jobSlots,
      tracing,
      settings,
    });
    const created = await untilAborted(creatingWorkers, signal);
    workers = created;
    signal.addEventListener('abort', () => created.shutdown());
    reconcileLoops.start();
    identity = created.identity;
    logger.info({ task_queue: settings.EXPORTD_TASK_QUEUE_PREFIX }, 'The worker is running.');
    encoders.warmUp();
    await created.run();
    await connection.close();
  } finally {
    await Promise.all([reconcileLoops.stop(), faultAlarm.stop()]);
    await stopMonitoring();
    await Promise.allSettled([encoders.close(), source.close(), queries.close(), temporal.close()]);
    await pool.end();
    await tracing?.stop();
  }
}
