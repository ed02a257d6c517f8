import type { Client } from '@temporalio/client';
// Of a CommonJS module whose names Node cannot see, only the whole can be imported.
import proto from '@temporalio/proto';
import type { Settings } from '../../config/settings.ts';
import { taskQueues } from '../task_queues.ts';

/** A worker asks again within a minute; one that has not asked for longer is gone. */
const freshMs = 70_000;

/**
 * How many pollers wait for tasks of schedules and runs.
 * @throws ServiceError of @temporalio/client when Temporal does not answer in time.
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
  const since = Date.now() - freshMs;
  return pollers.filter(({ lastAccessTime }) => Number(lastAccessTime?.seconds ?? 0) * 1_000 >= since).length;
}
