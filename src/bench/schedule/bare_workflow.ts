import { proxyActivities } from '@temporalio/workflow';

/** What a bare workflow starts with: the task queue of its activity, as a run has one for its own. */
export interface BareInput {
  readonly activity_task_queue: string;
}

/** The least that a workflow with a remote activity can be: the measure for exportd's runs. */
export async function bareWorkflow({ activity_task_queue }: BareInput): Promise<void> {
  const { doNothing } = proxyActivities<{ doNothing: () => Promise<void> }>({
    taskQueue: activity_task_queue,
    scheduleToCloseTimeout: '10m',
    heartbeatTimeout: '30s',
  });
  await doNothing();
}
