import type { Client } from '@temporalio/client';
import { maintenanceWorkflowId } from '../../contract/workflow_ids.ts';
import type { MaintenanceInput } from '../../contract/workflow_inputs.ts';
import { workflowTypes } from '../../contract/workflow_types.ts';
import { taskQueues, type ExecutionSettings } from '../task_queues.ts';

/** The upkeep workflow, as the reconciler uses it. */
export interface MaintenanceClient {
  readonly workflowId: string;
  /** Starts the workflow where it does not run. */
  start(): Promise<void>;
  /** Puts a fresh execution in the place of one that is stuck. */
  restart(): Promise<void>;
}

/** Starts the workflow that cleans up after all exports of a deployment. */
export function createMaintenanceClient(client: Client, settings: ExecutionSettings): MaintenanceClient {
  const queues = taskQueues(settings);
  const input: MaintenanceInput = { task_queue: queues.maintenance };
  const workflowId = maintenanceWorkflowId(settings.EXPORTD_TASK_QUEUE_PREFIX);
  const startAs = (workflowIdConflictPolicy: 'USE_EXISTING' | 'TERMINATE_EXISTING') =>
    client.workflow.start(workflowTypes.maintenance, {
      workflowId,
      workflowIdConflictPolicy,
      taskQueue: queues.control,
      args: [input],
      workflowTaskTimeout: settings.EXPORTD_WORKFLOW_TASK_TIMEOUT,
      staticSummary: 'Cleans up buckets and counts late rows',
    });
  return {
    workflowId,
    start: async () => {
      await startAs('USE_EXISTING');
    },
    restart: async () => {
      await startAs('TERMINATE_EXISTING');
    },
  };
}
