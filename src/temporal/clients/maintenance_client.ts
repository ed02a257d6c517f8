import type { Client } from '@temporalio/client';
import { workflowIds } from '../../contract/workflow_ids.ts';
import type { MaintenanceInput } from '../../contract/workflow_inputs.ts';
import { workflowTypes } from '../../contract/workflow_types.ts';
import { taskQueues, type ExecutionSettings } from '../task_queues.ts';

/** Starts the maintenance workflow of a deployment. */
export interface MaintenanceClient {
  readonly workflowId: string;
  /** Starts the workflow, unless it runs. */
  start(): Promise<void>;
  /** Terminates a stuck execution and starts a new one. */
  restart(): Promise<void>;
}

/** Creates the client. */
export function createMaintenanceClient(client: Client, settings: ExecutionSettings): MaintenanceClient {
  const queues = taskQueues(settings);
  const input: MaintenanceInput = { task_queue: queues.maintenance };
  const workflowId = workflowIds(settings).maintenance();
  const startAs = (workflowIdConflictPolicy: 'USE_EXISTING' | 'TERMINATE_EXISTING') =>
    client.workflow.start(workflowTypes.maintenance, {
      workflowId,
      workflowIdConflictPolicy,
      taskQueue: queues.control,
      args: [input],
      workflowTaskTimeout: settings.EXPORTD_WORKFLOW_TASK_TIMEOUT,
      staticSummary: 'Deletes obsolete objects and counts late rows',
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
