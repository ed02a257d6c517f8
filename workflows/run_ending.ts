import { ActivityFailure, ApplicationFailure, TimeoutFailure, isCancellation } from '@temporalio/workflow';
import type { RunEnding } from '../src/decisions/run_endings.ts';

/** How a run ends that did not complete, in words for the owner of the export. */
export interface Ending {
  readonly status: RunEnding;
  readonly latest_error: string;
}

/**
 * The ending that a failed step leads to; `quiet` when the run has a terminal status already, undefined for an error
 * that no step throws: a fault of this code, which Temporal retries until it is mended.
 */
export function endingOf(error: unknown): Ending | 'quiet' | undefined {
  if (isCancellation(error)) return { status: 'Cancelled', latest_error: 'Cancelled in Temporal.' };
  if (!(error instanceof ActivityFailure)) return undefined;
  const failure = applicationFailureIn(error);
  if (failure?.type === 'RunEnded') return 'quiet';
  if (failure)
    return {
      status: failure.nonRetryable === true ? 'Failed' : 'FailedRetryable',
      latest_error: `${failure.type ?? 'Error'}: ${failure.message}`,
    };
  const silent = error.cause instanceof TimeoutFailure && error.cause.timeoutType === 'HEARTBEAT';
  return {
    status: 'FailedRetryable',
    latest_error: silent
      ? 'WorkerLost: The worker that exported this interval stopped answering.'
      : `BudgetExceeded: The step ${error.activityType} did not end within its time.`,
  };
}

/** The failure that the activity itself reported, also when a time-out came last. */
function applicationFailureIn(error: Error): ApplicationFailure | undefined {
  if (error instanceof ApplicationFailure) return error;
  return error.cause instanceof Error ? applicationFailureIn(error.cause) : undefined;
}
