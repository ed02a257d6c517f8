import type { Client } from '@temporalio/client';
import type { Settings } from '../../config/settings.ts';
import { type JobInput, workflowIds } from '../../contract/workflow_inputs.ts';
import type { JobKind } from '../../jobs/jobs.ts';
import { taskQueues } from '../connections.ts';

/** What starting a job needs to know of its kind. */
type StartedKind = Pick<
  JobKind<object, object>,
  'workflowType' | 'summary' | 'worker' | 'attempts' | 'timeoutMs'
>;

/** Starts the workflows of stored jobs. */
export interface JobClient {
  /**
   * Starts one; its answer is stored. Rejects when Temporal is not reachable.
   * @returns the milliseconds after which there is no answer any more
   */
  start(kind: StartedKind, job: { readonly id: string; readonly team_id: number }): Promise<number>;
}

/** How long a busy worker may take to start. */
const startDelayMs = 2_000;

/** Creates the client. */
export function createJobClient(client: Client, settings: Settings): JobClient {
  const queues = taskQueues(settings);
  return {
    start: async ({ workflowType, summary, worker, attempts, timeoutMs }, { id, team_id }) => {
      const timeout_ms = timeoutMs(settings);
      const executionMs = timeout_ms + startDelayMs;
      const input: JobInput = {
        job_id: id,
        task_queue: queues[worker],
        timeout_ms,
        heartbeat_timeout_ms: settings.EXPORTD_HEARTBEAT_TIMEOUT,
        attempts,
      };
      await client.workflow.start(workflowType, {
        workflowId: workflowIds(settings).job(workflowType, id),
        taskQueue: queues.control,
        args: [input],
        // Projects take turns, where the server supports it.
        priority: { fairnessKey: String(team_id) },
        workflowExecutionTimeout: executionMs,
        workflowTaskTimeout: settings.EXPORTD_WORKFLOW_TASK_TIMEOUT,
        staticSummary: summary,
      });
      return executionMs;
    },
  };
}
