/**
 * Workflows that do one job each: what a person has asked, or a query. The control database has the job and its
 * outcome, an activity does it, and the workflow adds retries, waits and cancellation. The worker registers all that is
 * exported here.
 */
import {
  ApplicationFailure,
  CancellationScope,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
} from '@temporalio/workflow';
import type { JobActivities } from '../activities/jobs.ts';
import type { QueryActivities, QueryOutcomeActivities } from '../activities/query.ts';
import { type BackgroundQueryInput, isId, type JobInput } from '../src/contract/workflow_inputs.ts';
import { jobOptions, journalOptions, queryOptions } from './activity_options.ts';

/**
 * Does a stored job by the handler of its kind. The answer is stored, and never part of the history.
 * @throws ApplicationFailure `InvalidInput`
 */
async function job(input: JobInput | undefined): Promise<void> {
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

/** All kinds take the same steps. The name says in the Temporal UI what is done. */
export {
  job as batchExportDestinationTest,
  job as batchExportTableCheck,
  job as batchExportTableDescription,
  job as batchExportTableHistory,
  job as batchExportTableRepair,
  job as batchExportVerification,
  job as exportdWebhookTest,
};

const { recordBackgroundOutcome } = proxyLocalActivities<QueryOutcomeActivities>(journalOptions);

/**
 * Runs a background query: one activity, retried when its worker is lost. The query, its output and its error stay in
 * the control database; the workflow returns only the status.
 * @throws ApplicationFailure `InvalidInput`
 */
export async function backgroundQuery(
  input: BackgroundQueryInput | undefined,
): Promise<{ readonly status: string | null }> {
  // A manual start may pass any input.
  if (
    !isId(input?.execution_id) ||
    typeof input.task_queue !== 'string' ||
    typeof input.timeout_ms !== 'number' ||
    typeof input.heartbeat_timeout_ms !== 'number'
  )
    throw ApplicationFailure.nonRetryable(
      'The input needs an execution_id, a task_queue, a timeout_ms and a heartbeat_timeout_ms.',
      'InvalidInput',
    );
  const { execution_id } = input;
  const { runBackgroundQuery } = proxyActivities<QueryActivities>(queryOptions(input));
  try {
    return { status: await runBackgroundQuery({ execution_id }) };
  } catch (error) {
    // An attempt that fails while it is being cancelled is not retried, whatever the error.
    const cancelled = isCancellation(error) || CancellationScope.current().consideredCancelled;
    const status = cancelled ? 'cancelled' : 'failed';
    await CancellationScope.nonCancellable(() => recordBackgroundOutcome({ execution_id, status }));
    throw error;
  }
}
