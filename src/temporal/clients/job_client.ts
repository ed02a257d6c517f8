import type { Client } from '@temporalio/client';
import type { Settings } from '../../config/settings.ts';
import type { JobInput } from '../../contract/workflow_inputs.ts';
import { workflowIds } from '../../contract/workflow_ids.ts';
import { type JobKind, jobTimeoutMs } from '../../jobs/jobs.ts';
import type { Pool } from '../../journal/database.ts';
import { taskQueues } from '../task_queues.ts';
import { jobMetadata } from './user_metadata.ts';

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

/** What the Temporal UI says of a job. */
interface DescribedJob {
  readonly target: string;
  readonly parameters: object;
  /** That of the export; null if it is about something else. */
  readonly name: string | null;
}

/** Creates the client. It reads what the executions show from the control database. */
export function createJobClient(client: Client, pool: Pool, settings: Settings): JobClient {
  const queues = taskQueues(settings);
  const readJob = async (id: string): Promise<DescribedJob> => {
    const { rows } = await pool.query<DescribedJob>(
      `select job.target, job.parameters, export.name
       from exportd.jobs job left join exportd.batch_exports export on export.id = job.target where job.id = $1`,
      [id],
    );
    return rows[0] ?? { target: 'unknown', parameters: {}, name: null };
  };
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
        summary,
      };
      await client.workflow.start(workflowType, {
        workflowId: workflowIds(settings).job(workflowType, id),
        taskQueue: queues.control,
        args: [input],
        // Projects take turns, where the server supports it.
        priority: { fairnessKey: String(team_id) },
        workflowExecutionTimeout: executionMs,
        workflowTaskTimeout: settings.EXPORTD_WORKFLOW_TASK_TIMEOUT,
        ...jobMetadata({ id, summary, ...(await readJob(id)) }, settings),
      });
      return executionMs;
    },
  };
}
