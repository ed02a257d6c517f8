import type { Client } from '@temporalio/client';
// Node cannot see the names of this CommonJS module, so it is imported whole.
import proto from '@temporalio/proto';
import type { Settings } from '../../config/settings.ts';
import { taskQueues } from '../connections.ts';

type QueueSettings = Pick<Settings, 'EXPORTD_TASK_QUEUE_PREFIX'>;

/** A name of `taskQueues`. */
type TaskQueueName = keyof ReturnType<typeof taskQueues>;

/** A task queue as Temporal sees it. */
export interface TaskQueueState {
  readonly name: TaskQueueName;
  /** Worker processes that have polled it lately and get its tasks. */
  readonly pollers: number;
  /** Tasks that wait for a worker, approximately. */
  readonly backlog: number;
  /** How long the oldest of them has waited; 0 without any. */
  readonly backlog_age_seconds: number;
}

/** A live worker polls at least once a minute. */
const maxPollAgeMs = 70_000;

/** The queue of schedules and runs has workflow tasks; the others have activities only. */
const typeOf = (name: TaskQueueName) =>
  name === 'control'
    ? proto.temporal.api.enums.v1.TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
    : proto.temporal.api.enums.v1.TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY;

async function describe(client: Client, settings: QueueSettings, name: TaskQueueName, reportStats = false) {
  const { pollers, stats, versioningInfo } = await client.workflowService.describeTaskQueue({
    namespace: client.options.namespace,
    taskQueue: { name: taskQueues(settings)[name] },
    taskQueueType: typeOf(name),
    reportStats,
  });
  const since = Date.now() - maxPollAgeMs;
  const alive = pollers.filter(({ lastAccessTime }) => Number(lastAccessTime?.seconds ?? 0) * 1_000 >= since);
  const current = versionOf(versioningInfo?.currentDeploymentVersion);
  const routed = new Set([current]);
  if (versioningInfo?.rampingVersionPercentage)
    routed.add(versionOf(versioningInfo.rampingDeploymentVersion));
  return {
    stats,
    current,
    identities: new Set(alive.map(({ identity }) => identity)),
    /** Those that get tasks: Temporal sends none to other versions than the current one and the one that ramps up. */
    served: new Set(
      alive
        .filter(({ deploymentOptions }) =>
          routed.has(
            deploymentOptions?.workerVersioningMode === versioned ? versionOf(deploymentOptions) : null,
          ),
        )
        .map(({ identity }) => identity),
    ),
  };
}

const versioned = proto.temporal.api.enums.v1.WorkerVersioningMode.WORKER_VERSIONING_MODE_VERSIONED;

/** A Worker Deployment Version as Temporal writes it; null for unversioned workers. */
const versionOf = (
  version: { readonly deploymentName?: string | null; readonly buildId?: string | null } | null | undefined,
): string | null => (version?.buildId ? `${version.deploymentName ?? ''}:${version.buildId}` : null);

/**
 * Counts the worker processes that get tasks of the control task queue, which runs schedules and runs.
 * @throws ServiceError of @temporalio/client when Temporal does not respond in time
 */
export async function countPollers(client: Client, settings: QueueSettings): Promise<number> {
  return (await describe(client, settings, 'control')).served.size;
}

/**
 * Says why no worker gets tasks of the control task queue.
 * @throws ServiceError of @temporalio/client when Temporal does not respond in time
 */
export async function describeIdlePollers(client: Client, settings: QueueSettings): Promise<string> {
  const { identities, current } = await describe(client, settings, 'control');
  if (identities.size === 0) return 'no worker is polling: run "exportd worker"';
  return (
    `${String(identities.size)} worker(s) poll, but Temporal sends tasks to ${current ?? 'unversioned workers'}: ` +
    'make their version current with "temporal worker deployment set-current-version"'
  );
}

/**
 * Whether the process with this identity polls the control task queue.
 * @throws ServiceError of @temporalio/client when Temporal does not respond in time
 */
export async function isPolling(client: Client, settings: QueueSettings, identity: string): Promise<boolean> {
  return (await describe(client, settings, 'control')).identities.has(identity);
}

/**
 * Describes every task queue. Temporal knows a backlog from 1.25 on; on older servers it is 0.
 * @throws ServiceError of @temporalio/client when Temporal does not respond in time
 */
export async function describeTaskQueues(client: Client, settings: QueueSettings): Promise<TaskQueueState[]> {
  const names = Object.keys(taskQueues(settings)) as TaskQueueName[];
  return Promise.all(
    names.map(async (name) => {
      const { stats, served } = await describe(client, settings, name, true);
      return {
        name,
        pollers: served.size,
        backlog: Number(stats?.approximateBacklogCount ?? 0),
        backlog_age_seconds: Number(stats?.approximateBacklogAge?.seconds ?? 0),
      };
    }),
  );
}
