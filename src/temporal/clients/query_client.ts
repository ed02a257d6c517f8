import type { Client } from '@temporalio/client';
import type { Settings } from '../../config/settings.ts';
import type { BackgroundQueries } from '../../queries/query_service.ts';
import { queryWorkflowId } from '../../contract/workflow_ids.ts';
import type { BackgroundQueryInput } from '../../contract/workflow_inputs.ts';
import { workflowTypes } from '../../contract/workflow_types.ts';
import { searchAttributes } from '../../../workflows/search_attributes.ts';
import { ignoreNotFound } from './schedule_client.ts';
import { taskQueues, type ExecutionSettings } from '../task_queues.ts';

/** Beyond the time of the statement: to read the query, and to store its answer. */
const aroundMs = 30_000;

/** Runs queries as workflows on a Temporal namespace. */
export function createQueryClient(
  client: Client,
  settings: ExecutionSettings &
    Pick<Settings, 'EXPORTD_QUERY_ASYNC_TIMEOUT' | 'EXPORTD_QUERY_HEARTBEAT_TIMEOUT'>,
): BackgroundQueries {
  const queues = taskQueues(settings);
  return {
    start: async (query) => {
      const input: BackgroundQueryInput = {
        execution_id: query.execution_id,
        task_queue: queues.query,
        timeout_ms: settings.EXPORTD_QUERY_ASYNC_TIMEOUT + aroundMs,
        heartbeat_timeout_ms: settings.EXPORTD_QUERY_HEARTBEAT_TIMEOUT,
      };
      await client.workflow.start(workflowTypes.backgroundQuery, {
        workflowId: queryWorkflowId(query),
        // The status says that the id is free, so an execution that is still there has only to close.
        workflowIdConflictPolicy: 'TERMINATE_EXISTING',
        taskQueue: queues.control,
        args: [input],
        workflowTaskTimeout: settings.EXPORTD_WORKFLOW_TASK_TIMEOUT,
        typedSearchAttributes: [{ key: searchAttributes.project, value: String(query.team_id) }],
        staticSummary: `Query of project ${query.team_id}`,
      });
    },
    cancel: async (query) => {
      const handle = client.workflow.getHandle(queryWorkflowId(query));
      await handle.cancel().catch(ignoreNotFound);
    },
  };
}
