import { ApplicationFailure, proxyActivities } from '@temporalio/workflow';
import type { JobActivities } from '../activities/jobs.ts';
import type { JobInput } from '../src/contract/workflow_inputs.ts';
import { isId } from '../src/contract/workflow_ids.ts';
import { jobOptions } from './activity_options.ts';

/**
 * Does a stored job by the handler of its kind. The answer is stored, and never part of the history. Each kind is registered under
 * a name of its own.
 * @throws ApplicationFailure `InvalidInput`
 */
export async function job(input: JobInput | undefined): Promise<void> {
  // A manual start may pass any input.
  if (
    !isId(input?.job_id) ||
    typeof input.task_queue !== 'string' ||
    typeof input.timeout_ms !== 'number' ||
    typeof input.heartbeat_timeout_ms !== 'number' ||
    typeof input.attempts !== 'number'
  )
    throw ApplicationFailure.nonRetryable(
      'The input needs a job_id, a task_queue, a timeout_ms, a heartbeat_timeout_ms and a number of attempts.',
      'InvalidInput',
    );
  const { doJob } = proxyActivities<JobActivities>(jobOptions(input));
  await doJob({ job_id: input.job_id });
}
