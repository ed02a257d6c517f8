import {
  ActivityFailure,
  ApplicationFailure,
  TemporalFailure,
  TimeoutFailure,
  isCancellation,
} from '@temporalio/workflow';
import { isOperatorFault } from '../src/contract/operator_fault.ts';
import { isBudgetExceeded } from '../src/contract/retry_budget.ts';
import type { RunOutcome } from '../src/decisions/run_outcomes.ts';

/** How an incomplete run ends, with an error message for the owner of the export. */
export interface FailedOutcome {
  readonly status: RunOutcome;
  readonly latest_error: string;
}

/** The type of the failure of a run that waited for its source for too long. */
export const runTimedOut = 'TimedOut';

/** The error of a run whose execution was cancelled, and not its run. */
export const cancelledInTemporal = 'Cancelled in Temporal.';

/**
 * Maps the error of a failed step to the outcome of the run. Returns `already_ended` when the run already has a terminal
 * status, and undefined for an error that no step throws: a bug in workflow code, which Temporal retries until it is
 * fixed.
 */
export function outcomeOf(error: unknown): FailedOutcome | 'already_ended' | undefined {
  if (isCancellation(error)) return { status: 'Cancelled', latest_error: cancelledInTemporal };
  // The SDK wraps failures of remote activities in an ActivityFailure, but not those of local activities.
  if (!(error instanceof TemporalFailure)) return undefined;
  const { cause = error } = error;
  if (cause instanceof ApplicationFailure) {
    if (cause.type === 'RunEnded') return 'already_ended';
    if (cause.type === runTimedOut) return { status: 'TimedOut', latest_error: cause.message };
    const isRetried = isOperatorFault(cause.details) || isBudgetExceeded(cause.details);
    return {
      // A local activity cannot wait for the operator, so its failure is not retried. Never a reason to fail the run.
      status: cause.nonRetryable === true && !isRetried ? 'Failed' : 'FailedRetryable',
      latest_error: `${cause.type ?? 'Error'}: ${cause.message}`,
    };
  }
  return { status: 'FailedRetryable', latest_error: lastErrorBefore(cause) ?? explain(error, cause) };
}

/** The error of the last attempt before a timeout. The SDK omits it from the error but keeps the server's failure. */
function lastErrorBefore(timeout: Error): string | undefined {
  const last = timeout instanceof TimeoutFailure ? timeout.failure?.cause : undefined;
  const type = last?.applicationFailureInfo?.type;
  return type && last.message ? `${type}: ${last.message}` : undefined;
}

function explain(error: TemporalFailure, cause: Error): string {
  if (cause instanceof TimeoutFailure && cause.timeoutType === 'HEARTBEAT')
    return 'WorkerLost: The worker that exported this interval stopped sending heartbeats.';
  const step = error instanceof ActivityFailure ? `Activity ${error.activityType}` : 'Querying the source';
  return `BudgetExceeded: ${step} did not finish within its retry budget.`;
}
