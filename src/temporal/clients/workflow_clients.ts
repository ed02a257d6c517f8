import type { Client } from '@temporalio/client';
import type { Settings } from '../../config/settings.ts';
import type { MaintenanceInput } from '../../contract/workflow_inputs.ts';
import { workflowIds, workflowTypes } from '../../contract/workflow_ids.ts';
import type { Pool } from '../../journal/database.ts';
import { type ExecutionSettings, taskQueues } from '../task_queues.ts';
import { maintenanceMetadata } from './user_metadata.ts';
import { createBackfillClient } from './backfill_client.ts';
import { createRunStarter } from './run_starter.ts';
import { createScheduleClient } from './schedule_client.ts';

/** Starts the maintenance workflow of a deployment. */
export interface MaintenanceClient {
  readonly workflowId: string;
  /** Starts the workflow, unless it runs. */
  start(): Promise<void>;
  /** Terminates a stuck execution and starts a new one. */
  restart(): Promise<void>;
}

/** Creates the client. */
function createMaintenanceClient(client: Client, settings: ExecutionSettings): MaintenanceClient {
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
      ...maintenanceMetadata(),
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

/** Creates what starts and signals the workflows of each kind, for activities and reconcilers. */
export const createWorkflowClients = (client: Client, pool: Pool, settings: Settings) => ({
  schedules: createScheduleClient(client, pool, settings),
  runs: createRunStarter(client, settings),
  backfills: createBackfillClient(client, pool, settings),
  maintenance: createMaintenanceClient(client, settings),
});
