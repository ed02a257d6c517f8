import { Worker, type NativeConnection, type WorkflowBundleOption } from '@temporalio/worker';
import type { BackfillActivities } from '../../../activities/backfill.ts';
import type { DestinationTestActivities } from '../../../activities/destination_test.ts';
import type { ExportActivities } from '../../../activities/export.ts';
import { heartbeatIntervalMs } from '../../../activities/run_step.ts';
import type { MaintenanceActivities, MaintenancePlanner } from '../../../activities/maintenance.ts';
import type { NotificationActivities } from '../../../activities/notification.ts';
import type { QueryActivities, QueryOutcomeActivities } from '../../../activities/query.ts';
import type { RunActivities } from '../../../activities/run.ts';
import type { ScheduleActivities } from '../../../activities/schedule.ts';
import type { VerificationActivities } from '../../../activities/verification.ts';
import { maxConcurrentDeliveries, maxConcurrentMaintenanceTasks } from '../../../workflows/limits.ts';
import type { Settings } from '../../config/settings.ts';
import type { Tracing } from '../../telemetry/trace_provider.ts';
import { loadPayloadCodecs } from '../payload_codecs.ts';
import { taskQueues } from '../task_queues.ts';
import { activitySpans, workflowSinks } from '../tracing/interceptors.ts';
import { activityLogFields } from './activity_log_fields.ts';
import { maxCachedWorkflows } from './cached_workflows.ts';
import type { ActivitySlots } from './activity_slots.ts';

/** Activities by the worker that runs them. */
export interface WorkerActivities {
  readonly control: ScheduleActivities &
    BackfillActivities &
    RunActivities &
    DestinationTestActivities &
    MaintenancePlanner &
    QueryOutcomeActivities;
  readonly export: ExportActivities;
  readonly maintenance: MaintenanceActivities & NotificationActivities & VerificationActivities;
  readonly query: QueryActivities;
}

/** Dependencies of a process's workers. */
export interface WorkerDependencies {
  readonly connection: NativeConnection;
  readonly workflowBundle: WorkflowBundleOption;
  readonly activities: WorkerActivities;
  readonly exportSlots: ActivitySlots;
  readonly querySlots: ActivitySlots;
  /** Undefined if this process does not trace. */
  readonly tracing?: Tracing | undefined;
  readonly settings: Pick<
    Settings,
    | 'TEMPORAL_NAMESPACE'
    | 'EXPORTD_PAYLOAD_CODEC_MODULE'
    | 'EXPORTD_TASK_QUEUE_PREFIX'
    | 'EXPORTD_HEARTBEAT_TIMEOUT'
    | 'EXPORTD_WORKFLOW_TASK_TIMEOUT'
    | 'EXPORTD_MAX_CACHED_WORKFLOWS'
    | 'EXPORTD_QUERY_HEARTBEAT_TIMEOUT'
    | 'EXPORTD_SHUTDOWN_TIMEOUT'
  >;
}

/** The workers of a process. */
export interface Workers {
  /** The name of the process among the pollers of its task queues. */
  readonly identity: string;
  /** Polls until `shutdown`; rejects when Temporal rejects a worker for good. */
  run(): Promise<void>;
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

/** Many, since a run whose source counts slowly occupies one for the whole count, and pauses must not wait for it. */
const maxConcurrentWorkflowTasks = 200;

/**
 * Creates four workers: control (workflows and their decisions), export (rows), maintenance (buckets and webhooks) and
 * query. Each polls its own task queue.
 */
export async function createWorkers({
  connection,
  workflowBundle,
  activities,
  exportSlots,
  querySlots,
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
    shutdownGraceTime: settings.EXPORTD_SHUTDOWN_TIMEOUT - cancelBeforeEndMs,
    shutdownForceTime: settings.EXPORTD_SHUTDOWN_TIMEOUT - abandonBeforeEndMs,
  } as const;
  const queues = taskQueues(settings);
  const maxHeartbeatThrottleInterval = heartbeatIntervalMs(settings.EXPORTD_HEARTBEAT_TIMEOUT);
  const cacheSize = maxCachedWorkflows(settings);
  const control = await Worker.create({
    ...shared,
    taskQueue: queues.control,
    workflowBundle,
    sinks: await workflowSinks(tracing),
    activities: activities.control,
    maxCachedWorkflows: cacheSize,
    stickyQueueScheduleToStartTimeout: settings.EXPORTD_WORKFLOW_TASK_TIMEOUT,
    // The SDK allows no more concurrent tasks than cached workflows.
    maxConcurrentWorkflowTaskExecutions: Math.min(maxConcurrentWorkflowTasks, cacheSize),
    maxConcurrentLocalActivityExecutions: maxConcurrentWorkflowTasks,
    // Nearly all its activities are local. Only a schedule with manual signals or very many commands uses remote ones, and
    // a run that waits for the operator.
    maxConcurrentActivityTaskPolls: 1,
    maxHeartbeatThrottleInterval,
    // A workflow that new code cannot replay would stay Running and lose its signals. Once failed, the reconciler starts
    // it again from the journal.
    workflowFailureErrorTypes: { '*': ['NondeterminismError'] },
  });
  const data = await Worker.create({
    ...shared,
    taskQueue: queues.export,
    activities: activities.export,
    tuner: { ...activityWorkerSlots, activityTaskSlotSupplier: exportSlots.supplier },
    maxHeartbeatThrottleInterval,
  });
  const maintenance = await Worker.create({
    ...shared,
    taskQueue: queues.maintenance,
    activities: activities.maintenance,
    // A deployment has one maintenance, so each of its tasks has a slot beside the deliveries.
    maxConcurrentActivityTaskExecutions: maxConcurrentMaintenanceTasks + maxConcurrentDeliveries,
    maxConcurrentActivityTaskPolls: 1,
    maxHeartbeatThrottleInterval,
  });
  const query = await Worker.create({
    ...shared,
    taskQueue: queues.query,
    activities: activities.query,
    tuner: { ...activityWorkerSlots, activityTaskSlotSupplier: querySlots.supplier },
    maxConcurrentActivityTaskPolls: 1,
    maxHeartbeatThrottleInterval: heartbeatIntervalMs(settings.EXPORTD_QUERY_HEARTBEAT_TIMEOUT),
  });
  const workers = [control, data, maintenance, query];
  const shutdown = (): void => {
    for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
  };
  return {
    identity: control.options.identity,
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
