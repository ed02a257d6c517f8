import {
  ApplicationFailure,
  CancellationScope,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
} from '@temporalio/workflow';
import type { QueryActivities, QueryOutcomeActivities } from '../activities/query.ts';
import type { BackgroundQueryInput } from '../src/contract/background_query_input.ts';
import { isId } from '../src/contract/workflow_ids.ts';
import { journalOptions } from './activity_options.ts';
import { queryOptions } from './background_query_options.ts';

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
