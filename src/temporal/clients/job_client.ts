import type { Client } from '@temporalio/client';
import type { Settings } from '../../config/settings.ts';
import { type JobInput, workflowIds } from '../../contract/workflow_inputs.ts';
import { type JobKind, jobTimeoutMs } from '../../jobs/jobs.ts';
import { taskQueues } from '../connections.ts';

/** What starting a job needs to know of its kind. */
type StartedKind = Pick<JobKind<object, object>, 'workflowType' | 'summary' | 'attempts' | 'timeoutMs'>;

/** Starts the workflows of stored jobs. */
export interface JobClient {
  /**
   * Starts one; its answer is stored. Rejects when Temporal is not reachable.
   * @returns the milliseconds after which there is no answer any more
   */
  start(kind: StartedKind, job: { readonly id: string; readonly team_id: number }): Promise<number>;
}

/** Creates the client. */
export function createJobClient(client: Client, settings: Settings): JobClient {
  const queues = taskQueues(settings);
  return {
    start: async (kind, { id, team_id }) => {
      const { workflowType, summary, attempts } = kind;
      const executionMs = jobTimeoutMs(kind, settings);
      const input: JobInput = {
        job_id: id,
        task_queue: queues.jobs,
        // The activity limits its own time, and stores that.
        timeout_ms: executionMs,
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
