import type { Client } from '@temporalio/client';
import { searchAttributes } from '../../../workflows/activity_options.ts';
import type { Settings } from '../../config/settings.ts';
import type { BackgroundQueryInput } from '../../contract/background_query_input.ts';
import { workflowIds, workflowTypes } from '../../contract/workflow_ids.ts';
import type { BackgroundQueries } from '../../queries/handle_query.ts';
import { backgroundQueueTimeoutMs } from '../../queries/query_slots.ts';
import { type ExecutionSettings, taskQueues } from '../task_queues.ts';
import { queryMetadata } from './user_metadata.ts';
import { ignoreNotFound } from './executions.ts';

/** To read the query and to store its result, in addition to the statement. */
const overheadMs = 30_000;

/** Creates what runs background queries as workflows. */
export function createQueryClient(
  client: Client,
  settings: ExecutionSettings &
    Pick<Settings, 'EXPORTD_BASE_URL' | 'EXPORTD_QUERY_ASYNC_TIMEOUT' | 'EXPORTD_QUERY_HEARTBEAT_TIMEOUT'>,
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
        ...queryMetadata(query, settings),
      });
    },
    cancel: async (query) => {
      const handle = client.workflow.getHandle(ids.query(query));
      await handle.cancel().catch(ignoreNotFound);
    },
  };
}
