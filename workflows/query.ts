import {
  ApplicationFailure,
  CancellationScope,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
} from '@temporalio/workflow';
import type { QueryActivities, QueryEndActivities } from '../activities/query.ts';
import { isId } from '../src/contract/workflow_ids.ts';
import type { QueryInput } from '../src/contract/workflow_inputs.ts';
import { queryPolicy, recordingPolicy } from './policies.ts';

const { endStoredQuery } = proxyLocalActivities<QueryEndActivities>(recordingPolicy);

/**
 * Runs a query in the background: one activity, repeated when its worker is lost. What it is, what it answers and why
 * it fails stay in the control database; here is only how it ended.
 */
export async function query(input: QueryInput): Promise<{ readonly status: string | null }> {
  // May have been started by hand with anything.
  if (
    !isId(input.execution_id) ||
    typeof input.task_queue !== 'string' ||
    typeof input.longest_ms !== 'number' ||
    typeof input.heartbeat_timeout_ms !== 'number'
  )
    throw ApplicationFailure.nonRetryable(
      'The input has to name an execution, a task queue and the limits of a query.',
      'InvalidInput',
    );
  const { execution_id } = input;
  const { runStoredQuery } = proxyActivities<QueryActivities>(queryPolicy(input));
  try {
    return { status: await runStoredQuery({ execution_id }) };
  } catch (error) {
    // An attempt that fails for another reason while it is being cancelled is not repeated.
    const cancelled = isCancellation(error) || CancellationScope.current().consideredCancelled;
    const status = cancelled ? 'cancelled' : 'failed';
    await CancellationScope.nonCancellable(() => endStoredQuery({ execution_id, status }));
    throw error;
  }
}
