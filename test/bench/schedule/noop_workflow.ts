import { proxyActivities } from '@temporalio/workflow';

/** Input of a no-op workflow: the task queue of its activity. */
export interface NoopInput {
  readonly activity_task_queue: string;
}

/** The smallest workflow with a remote activity, which the runs of exportd are compared with. */
export async function noopWorkflow({ activity_task_queue }: NoopInput): Promise<void> {
  const { doNothing } = proxyActivities<{ doNothing: () => Promise<void> }>({
    taskQueue: activity_task_queue,
    scheduleToCloseTimeout: '10m',
    heartbeatTimeout: '30s',
  });
  await doNothing();
}
