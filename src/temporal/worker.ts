import { Worker, type NativeConnection, type WorkflowBundleOption } from '@temporalio/worker';
import { heartbeatIntervalMs } from '../../activities/activity_context.ts';
import type { AppendActivities } from '../../activities/append.ts';
import type { DestinationTestActivities } from '../../activities/destination_test.ts';
import type { createExportActivities } from '../../activities/export.ts';
import type { NotifyActivities } from '../../activities/notify.ts';
import type { QueryActivities, QueryEndActivities } from '../../activities/query.ts';
import type { UpkeepActivities, UpkeepLook } from '../../activities/upkeep.ts';
import { deliveriesAtOnce, upkeepTasksAtOnce } from '../../workflows/policies.ts';
import type { Settings } from '../config/settings.ts';
import { cachedWorkflows } from './cached_workflows.ts';
import type { ExportSlots } from './export_slots.ts';
import { taskQueues } from './task_queues.ts';

/** What the workers of a process are made of. */
export interface WorkerDependencies {
  readonly connection: NativeConnection;
  readonly workflowBundle: WorkflowBundleOption;
  readonly appendActivities: AppendActivities;
  readonly destinationTestActivities: DestinationTestActivities;
  readonly exportActivities: ReturnType<typeof createExportActivities>;
  readonly exportSlots: ExportSlots;
  readonly upkeepLook: UpkeepLook;
  readonly upkeepActivities: UpkeepActivities;
  readonly notifyActivities: NotifyActivities;
  readonly queryActivities: QueryActivities;
  readonly queryEndActivities: QueryEndActivities;
  readonly settings: Pick<
    Settings,
    | 'TEMPORAL_NAMESPACE'
    | 'EXPORTD_TASK_QUEUE'
    | 'EXPORTD_HEARTBEAT_TIMEOUT_MS'
    | 'EXPORTD_WORKFLOW_TASK_TIMEOUT_MS'
    | 'EXPORTD_CACHED_WORKFLOWS'
    | 'EXPORTD_QUERY_SLOTS'
    | 'EXPORTD_QUERY_HEARTBEAT_TIMEOUT_MS'
  >;
}

/** The workers of a process. */
export interface Workers {
  /** Polls until `shutdown`; rejects when Temporal refuses the workers for good. */
  run(): Promise<void>;
  /** Ends within the grace, letting what is under way finish or be taken over by another worker. */
  shutdown(): void;
}

/** Time for a part that is under way to reach the destination. */
const shutdownGraceTime = '5s';
/** After this, activities that did not hear that they should end are left behind; their heartbeats stop. */
const shutdownForceTime = '10s';

/** Of a worker for activities alone; the SDK wants a number for each kind all the same. */
const noSlots = {
  workflowTaskSlotSupplier: { type: 'fixed-size', numSlots: 2 },
  localActivityTaskSlotSupplier: { type: 'fixed-size', numSlots: 1 },
  nexusTaskSlotSupplier: { type: 'fixed-size', numSlots: 1 },
} as const;

/**
 * Workflow tasks under way at once. A run whose source is slow to count keeps one of them all the while, and those of
 * others, pauses among them, must find one free.
 */
const workflowTasksAtOnce = 200;

/** Makes the control worker (workflows and their decisions), the export worker (rows), the upkeep worker (buckets and webhooks) and the query worker. */
export async function createWorkers(dependencies: WorkerDependencies): Promise<Workers> {
  const { connection, settings } = dependencies;
  const shared = {
    connection,
    namespace: settings.TEMPORAL_NAMESPACE,
    shutdownGraceTime,
    shutdownForceTime,
  } as const;
  const queues = taskQueues(settings);
  const maxHeartbeatThrottleInterval = heartbeatIntervalMs(settings.EXPORTD_HEARTBEAT_TIMEOUT_MS);
  const maxCachedWorkflows = cachedWorkflows(settings);
  const control = await Worker.create({
    ...shared,
    taskQueue: queues.control,
    workflowBundle: dependencies.workflowBundle,
    activities: {
      ...dependencies.appendActivities,
      ...dependencies.destinationTestActivities,
      ...dependencies.upkeepLook,
      ...dependencies.queryEndActivities,
    },
    maxCachedWorkflows,
    stickyQueueScheduleToStartTimeout: settings.EXPORTD_WORKFLOW_TASK_TIMEOUT_MS,
    // The SDK takes no more at once than it keeps.
    maxConcurrentWorkflowTaskExecutions: Math.min(workflowTasksAtOnce, maxCachedWorkflows),
    maxConcurrentLocalActivityExecutions: workflowTasksAtOnce,
    // Every activity of this worker is local, but for the steps of a schedule with signals sent by hand or with very many.
    maxConcurrentActivityTaskPolls: 1,
    // Otherwise a workflow that a new version cannot replay stays Running and swallows signals for ever; as failed it
    // is started again, from the journal.
    workflowFailureErrorTypes: { '*': ['NondeterminismError'] },
  });
  const data = await Worker.create({
    ...shared,
    taskQueue: queues.export,
    activities: dependencies.exportActivities,
    tuner: { ...noSlots, activityTaskSlotSupplier: dependencies.exportSlots.supplier },
    maxHeartbeatThrottleInterval,
  });
  const upkeep = await Worker.create({
    ...shared,
    taskQueue: queues.upkeep,
    activities: { ...dependencies.upkeepActivities, ...dependencies.notifyActivities },
    // The one upkeep of a deployment has no more under way, so there is a place for each of its tasks beside deliveries.
    maxConcurrentActivityTaskExecutions: upkeepTasksAtOnce + deliveriesAtOnce,
    maxConcurrentActivityTaskPolls: 1,
    maxHeartbeatThrottleInterval,
  });
  const queries = await Worker.create({
    ...shared,
    taskQueue: queues.query,
    activities: dependencies.queryActivities,
    maxConcurrentActivityTaskExecutions: settings.EXPORTD_QUERY_SLOTS,
    maxConcurrentActivityTaskPolls: 1,
    maxHeartbeatThrottleInterval: heartbeatIntervalMs(settings.EXPORTD_QUERY_HEARTBEAT_TIMEOUT_MS),
  });
  const workers = [control, data, upkeep, queries];
  const shutdown = (): void => {
    for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
  };
  return {
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
