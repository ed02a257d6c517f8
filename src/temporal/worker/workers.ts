import { totalmem } from 'node:os';
import { performance } from 'node:perf_hooks';
import type { OpenTelemetrySinks } from '@temporalio/interceptors-opentelemetry';
import {
  type ActivityInterceptorsFactory,
  type InjectedSinks,
  type NativeConnection,
  Worker,
  type WorkerOptions,
  type WorkflowBundleOption,
} from '@temporalio/worker';
import type { JobActivities } from '../../../activities/jobs.ts';
import type { ExportActivities, RunActivities } from '../../../activities/run.ts';
import type { MaintenanceActivities, MaintenancePlanner } from '../../../activities/maintenance.ts';
import type { QueryActivities, QueryOutcomeActivities } from '../../../activities/query.ts';
import { heartbeatIntervalMs } from '../../../activities/run_step.ts';
import type { ScheduleActivities } from '../../../activities/schedule.ts';
import { maxConcurrentMaintenanceTasks } from '../../../workflows/activity_options.ts';
import type { Settings } from '../../config/settings.ts';
import type { WaitingRuns } from '../../decisions/waiting_runs.ts';
import { withLogFields } from '../../telemetry/logger.ts';
import type { Tracing } from '../../telemetry/trace_provider.ts';
import { version } from '../../telemetry/version.ts';
import { loadPayloadCodecs } from '../payload_codecs.ts';
import { taskQueues } from '../task_queues.ts';
import type { ActivitySlots, FairActivitySlots } from './activity_slots.ts';
import { WorkflowWorker } from './workflow_worker.ts';
import type { BackfillActivities } from '../../../activities/backfill.ts';
import { admission } from './admission.ts';

/**
 * Measured: a sleeping schedule takes 100 kB after its first step, as a workflow of the SDK that only sleeps does, and 13 kB for
 * each step since.
 */
const bytesPerWorkflow = 180_000;
/** Share of the memory for cached workflows. */
const memoryShare = 0.1;
/** The number of concurrent workflow tasks. */
const minWorkflows = 100;
/** 160 MB. A schedule that is not cached is replayed: at most 16 steps, for each a millisecond of CPU. */
const maxWorkflows = 900;

/**
 * How many workflow executions a worker caches.
 * @param memoryBytes memory of the machine, or of the container if that is less
 */
export const maxCachedWorkflows = (memoryBytes = availableMemory()): number =>
  Math.min(maxWorkflows, Math.max(minWorkflows, Math.floor((memoryBytes * memoryShare) / bytesPerWorkflow)));

/** Without a constraint Node returns 0, or a number larger than the memory. */
function availableMemory(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}

/** Gives the log lines of an activity its name, its workflow and the ids of its input: of the run, the export, the delivery. */
const activityLogFields: ActivityInterceptorsFactory = ({ info }) => ({
  inbound: {
    execute: (input, next) =>
      withLogFields(
        {
          activity: info.activityType,
          workflow_id: info.workflowExecution?.workflowId,
          ...idsOf(input.args[0]),
        },
        () => next(input),
      ),
  },
});

/** Inputs name everything else by its id. */
function idsOf(input: unknown): Record<string, string> {
  if (typeof input !== 'object' || input === null) return {};
  const ids = Object.entries(input).filter(
    (field): field is [string, string] => field[0].endsWith('_id') && typeof field[1] === 'string',
  );
  return Object.fromEntries(ids);
}

// The packages load the SDK of OpenTelemetry, so processes that do not trace do not import them.

/** The interceptors of activities: a span for each attempt. */
async function activitySpans(tracing: Tracing | undefined): Promise<ActivityInterceptorsFactory[]> {
  if (!tracing) return [];
  const { OpenTelemetryActivityInboundInterceptor } = await import('@temporalio/interceptors-opentelemetry');
  return [(activity) => ({ inbound: new OpenTelemetryActivityInboundInterceptor(activity) })];
}

/** The sink for spans of workflows. Without tracing it ignores them: a workflow can have started in a process that traces. */
async function workflowSinks(tracing: Tracing | undefined): Promise<InjectedSinks<OpenTelemetrySinks>> {
  if (!tracing) return { exporter: { export: { fn: () => undefined } } };
  const { workflowSpanSink } = await import('../workflow_spans.ts');
  return workflowSpanSink(tracing);
}

/** Activities by the worker that runs them. */
interface WorkerActivities {
  readonly control: ScheduleActivities &
    BackfillActivities &
    RunActivities &
    MaintenancePlanner &
    QueryOutcomeActivities;
  readonly export: ExportActivities;
  /** With those of optional capabilities. */
  readonly maintenance: MaintenanceActivities;
  readonly query: QueryActivities;
  readonly jobs: JobActivities;
}

/** Dependencies of a process's workers. */
interface WorkerDependencies {
  readonly connection: NativeConnection;
  readonly workflowBundle: WorkflowBundleOption;
  readonly activities: WorkerActivities;
  readonly exportSlots: FairActivitySlots;
  readonly waitingRuns: WaitingRuns;
  /** How many activities of optional capabilities run beside the maintenance. */
  readonly capabilitySlots: number;
  readonly querySlots: ActivitySlots;
  readonly jobSlots: ActivitySlots;
  /** Undefined if this process does not trace. */
  readonly tracing?: Tracing | undefined;
  readonly settings: Pick<
    Settings,
    | 'TEMPORAL_NAMESPACE'
    | 'EXPORTD_PAYLOAD_CODEC_MODULE'
    | 'EXPORTD_TASK_QUEUE_PREFIX'
    | 'EXPORTD_HEARTBEAT_TIMEOUT'
    | 'EXPORTD_WORKFLOW_TASK_TIMEOUT'
    | 'EXPORTD_QUERY_HEARTBEAT_TIMEOUT'
    | 'EXPORTD_SHUTDOWN_TIMEOUT'
    | 'EXPORTD_DEPLOYMENT_NAME'
    | 'EXPORTD_BUILD_ID'
  >;
}

/**
 * The Worker Deployment Version of a worker. Workflows move to the current version with their next task: they hold nothing that
 * is not in the journal, and one that cannot be replayed is started again.
 */
function versioning({
  EXPORTD_DEPLOYMENT_NAME: deploymentName,
  EXPORTD_BUILD_ID: buildId = version,
}: Pick<Settings, 'EXPORTD_DEPLOYMENT_NAME' | 'EXPORTD_BUILD_ID'>): Pick<
  WorkerOptions,
  'workerDeploymentOptions'
> {
  if (deploymentName === undefined) return {};
  return {
    workerDeploymentOptions: {
      version: { deploymentName, buildId },
      useWorkerVersioning: true,
      defaultVersioningBehavior: 'AUTO_UPGRADE',
    },
  };
}

/** The workers of a process. */
interface Workers {
  /** The name of the process among the pollers of its task queues. */
  readonly identity: string;
  /** Polls until `shutdown`; rejects when Temporal rejects a worker for good. */
  run(): Promise<void>;
  /** Whether it has room for more workflow tasks and decisions, and its thread has time for them. */
  isIdle(): boolean;
  /** Stops polling. Activities have a grace period to finish; another worker repeats those that do not. */
  shutdown(): void;
}

/** How long before the process ends activities are cancelled. They have finished or stopped by then, or are resumed. */
const cancelBeforeEndMs = 10_000;
/** How long before the end the worker abandons activities that ignored their cancellation; their heartbeats stop. */
const abandonBeforeEndMs = 5_000;

/** Slots of a worker without workflows. The SDK requires a number for each type. */
const activityWorkerSlots = {
  workflowTaskSlotSupplier: { type: 'fixed-size', numSlots: 2 },
  localActivityTaskSlotSupplier: { type: 'fixed-size', numSlots: 1 },
  nexusTaskSlotSupplier: { type: 'fixed-size', numSlots: 1 },
} as const;

/** Many, since a run whose source is slow occupies one for two seconds, and pauses must not wait for it. Each holds memory. */
const maxConcurrentWorkflowTasks = 100;

/** A worker that uses less of its slots and of its thread is idle. */
const idleShare = 0.8;
/** How often the use of the thread is measured, in milliseconds. */
const idleWindowMs = 5_000;

/**
 * Creates five workers: control (workflows and their decisions), export (rows), maintenance (buckets, capabilities), query,
 * and jobs (what people ask of buckets and receivers). Each polls its own task queue.
 */
export async function createWorkers({
  connection,
  workflowBundle,
  activities,
  exportSlots,
  waitingRuns,
  capabilitySlots,
  querySlots,
  jobSlots,
  tracing,
  settings,
}: WorkerDependencies): Promise<Workers> {
  // The span first: log lines carry its ids.
  const interceptors = { activity: [...(await activitySpans(tracing)), activityLogFields] };
  const shared = {
    connection,
    namespace: settings.TEMPORAL_NAMESPACE,
    dataConverter: { payloadCodecs: await loadPayloadCodecs(settings) },
    interceptors,
    ...versioning(settings),
    shutdownGraceTime: settings.EXPORTD_SHUTDOWN_TIMEOUT - cancelBeforeEndMs,
    shutdownForceTime: settings.EXPORTD_SHUTDOWN_TIMEOUT - abandonBeforeEndMs,
  } as const;
  const queues = taskQueues(settings);
  const maxHeartbeatThrottleInterval = heartbeatIntervalMs(settings.EXPORTD_HEARTBEAT_TIMEOUT);
  const cacheSize = maxCachedWorkflows();
  const sinks = await workflowSinks(tracing);
  const creatingControl = WorkflowWorker.create({
    ...shared,
    taskQueue: queues.control,
    workflowBundle,
    sinks,
    activities: activities.control,
    maxCachedWorkflows: cacheSize,
    stickyQueueScheduleToStartTimeout: settings.EXPORTD_WORKFLOW_TASK_TIMEOUT,
    // The SDK allows no more concurrent tasks than cached workflows.
    maxConcurrentWorkflowTaskExecutions: Math.min(maxConcurrentWorkflowTasks, cacheSize),
    maxConcurrentLocalActivityExecutions: maxConcurrentWorkflowTasks,
    // Nearly all its activities are local. Only a schedule with manual signals or very many commands uses remote ones, and
    // a run whose source is slow, or that waits for the operator.
    maxConcurrentActivityTaskPolls: 1,
    maxHeartbeatThrottleInterval,
    // A workflow that new code cannot replay would stay Running and lose its signals. Once failed, the reconciler starts
    // it again from the journal.
    workflowFailureErrorTypes: { '*': ['NondeterminismError'] },
  });
  const creatingData = Worker.create({
    ...shared,
    taskQueue: queues.export,
    activities: activities.export,
    interceptors: { activity: [...interceptors.activity, admission(exportSlots, waitingRuns, settings)] },
    tuner: { ...activityWorkerSlots, activityTaskSlotSupplier: exportSlots.supplier },
    maxHeartbeatThrottleInterval,
  });
  const creatingMaintenance = Worker.create({
    ...shared,
    taskQueue: queues.maintenance,
    activities: activities.maintenance,
    // A deployment has one maintenance, so each of its tasks has a slot beside those of capabilities.
    maxConcurrentActivityTaskExecutions: maxConcurrentMaintenanceTasks + capabilitySlots,
    maxConcurrentActivityTaskPolls: 1,
    maxHeartbeatThrottleInterval,
  });
  const creatingQuery = Worker.create({
    ...shared,
    taskQueue: queues.query,
    activities: activities.query,
    tuner: { ...activityWorkerSlots, activityTaskSlotSupplier: querySlots.supplier },
    maxConcurrentActivityTaskPolls: 1,
    maxHeartbeatThrottleInterval: heartbeatIntervalMs(settings.EXPORTD_QUERY_HEARTBEAT_TIMEOUT),
  });
  const creatingJobs = Worker.create({
    ...shared,
    taskQueue: queues.jobs,
    activities: activities.jobs,
    tuner: { ...activityWorkerSlots, activityTaskSlotSupplier: jobSlots.supplier },
    maxConcurrentActivityTaskPolls: 1,
    maxHeartbeatThrottleInterval,
  });
  // Together, since the first waits for its thread to load the workflows.
  const workers = await Promise.all([
    creatingControl,
    creatingData,
    creatingMaintenance,
    creatingQuery,
    creatingJobs,
  ]);
  const [control] = workers;
  let measured = performance.eventLoopUtilization();
  let measuredAt = performance.now();
  let utilization = 0;
  const shutdown = (): void => {
    for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
  };
  return {
    identity: control.options.identity,
    isIdle: () => {
      if (performance.now() - measuredAt > idleWindowMs) {
        const now = performance.eventLoopUtilization();
        ({ utilization } = performance.eventLoopUtilization(now, measured));
        [measured, measuredAt] = [now, performance.now()];
      }
      const { numInFlightLocalActivities, numInFlightWorkflowActivations } = control.getStatus();
      const busiest = Math.max(numInFlightLocalActivities, numInFlightWorkflowActivations);
      return busiest < maxConcurrentWorkflowTasks * idleShare && utilization < idleShare;
    },
    run: async () => {
      try {
        await Promise.all(workers.map((worker) => worker.run()));
      } finally {
        shutdown();
      }
    },
    shutdown,
  };
}
