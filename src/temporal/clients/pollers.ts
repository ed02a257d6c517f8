import type { Client } from '@temporalio/client';
// Node cannot see the names of this CommonJS module, so it is imported whole.
import proto from '@temporalio/proto';
import type { Settings } from '../../config/settings.ts';
import { taskQueues } from '../task_queues.ts';

/** A live worker polls at least once a minute. */
const maxPollAgeMs = 70_000;

/**
 * Counts the pollers of the control task queue, which runs schedules and runs.
 * @throws ServiceError of @temporalio/client when Temporal does not respond in time
 */
export async function countPollers(
  client: Client,
  settings: Pick<Settings, 'EXPORTD_TASK_QUEUE_PREFIX'>,
): Promise<number> {
  const { pollers } = await client.workflowService.describeTaskQueue({
    namespace: client.options.namespace,
    taskQueue: { name: taskQueues(settings).control },
    taskQueueType: proto.temporal.api.enums.v1.TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
  });
  const since = Date.now() - maxPollAgeMs;
  return pollers.filter(({ lastAccessTime }) => Number(lastAccessTime?.seconds ?? 0) * 1_000 >= since).length;
}
