import type { Client } from '@temporalio/client';
import { searchAttributes } from '../../../workflows/activity_options.ts';
import type { Settings } from '../../config/settings.ts';
import { workflowIds, workflowTypes, type MaintenanceInput } from '../../contract/workflow_inputs.ts';
import type { BackgroundQueryInput } from '../../contract/background_query_input.ts';
import type { Pool } from '../../journal/database.ts';
import type { BackgroundQueries } from '../../queries/handle_query.ts';
import { backgroundQueueTimeoutMs } from '../../queries/query_slots.ts';
import { type ExecutionSettings, taskQueues } from '../connections.ts';
import {
  createRunStarter,
  createBackfillClient,
  createScheduleClient,
  ignoreNotFound,
} from './export_workflows.ts';

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

/** To read the query and to store its result, in addition to the statement. */
const overheadMs = 30_000;

/** Runs background queries as workflows. */
export function createQueryClient(
  client: Client,
  settings: ExecutionSettings &
    Pick<Settings, 'EXPORTD_QUERY_ASYNC_TIMEOUT' | 'EXPORTD_QUERY_HEARTBEAT_TIMEOUT'>,
): BackgroundQueries {
  const queues = taskQueues(settings);
  const ids = workflowIds(settings);
  return {
    start: async (query) => {
      const input: BackgroundQueryInput = {
        execution_id: query.execution_id,
        task_queue: queues.query,
        timeout_ms: backgroundQueueTimeoutMs + settings.EXPORTD_QUERY_ASYNC_TIMEOUT + overheadMs,
        heartbeat_timeout_ms: settings.EXPORTD_QUERY_HEARTBEAT_TIMEOUT,
      };
      await client.workflow.start(workflowTypes.backgroundQuery, {
        workflowId: ids.query(query),
        // The stored status says that the id is free, so a remaining execution is about to close.
        workflowIdConflictPolicy: 'TERMINATE_EXISTING',
        taskQueue: queues.control,
        args: [input],
        // Its activity inherits this. Projects take turns, where the server supports it.
        priority: { fairnessKey: String(query.team_id) },
        workflowTaskTimeout: settings.EXPORTD_WORKFLOW_TASK_TIMEOUT,
        typedSearchAttributes: [{ key: searchAttributes.project, value: String(query.team_id) }],
        staticSummary: `Query of project ${query.team_id}`,
      });
    },
    cancel: async (query) => {
      const handle = client.workflow.getHandle(ids.query(query));
      await handle.cancel().catch(ignoreNotFound);
    },
  };
}

/** Creates what starts and signals the workflows of each kind, for activities and reconcilers. */
export const createWorkflowClients = (client: Client, pool: Pool, settings: Settings) => ({
  schedules: createScheduleClient(client, settings),
  runs: createRunStarter(client, settings),
  backfills: createBackfillClient(client, pool, settings),
  maintenance: createMaintenanceClient(client, settings),
});
