import type { Client } from '@temporalio/client';
import { upkeepWorkflowId, workflowTypes, type UpkeepInput } from '../../workflows/messages.ts';
import { taskQueues, type ExecutionSettings } from './task_queues.ts';

/** The upkeep workflow, as the reconciler uses it. */
export interface UpkeepClient {
  readonly workflowId: string;
  /** Starts the workflow where it does not run. */
  start(): Promise<void>;
  /** Puts a fresh execution in the place of one that is stuck. */
  replace(): Promise<void>;
}

/** Starts the workflow that cleans up after all exports of a deployment. */
export function createUpkeepClient(client: Client, settings: ExecutionSettings): UpkeepClient {
  const queues = taskQueues(settings);
  const input: UpkeepInput = { upkeep_task_queue: queues.upkeep };
  const workflowId = upkeepWorkflowId(settings.EXPORTD_TASK_QUEUE);
  const startAs = (workflowIdConflictPolicy: 'USE_EXISTING' | 'TERMINATE_EXISTING') =>
    client.workflow.start(workflowTypes.upkeep, {
      workflowId,
      workflowIdConflictPolicy,
      taskQueue: queues.control,
      args: [input],
      workflowTaskTimeout: settings.EXPORTD_WORKFLOW_TASK_TIMEOUT_MS,
      staticSummary: 'Cleans up buckets and counts late rows',
    });
  return {
    workflowId,
    start: async () => {
      await startAs('USE_EXISTING');
    },
    replace: async () => {
      await startAs('TERMINATE_EXISTING');
    },
  };
}
