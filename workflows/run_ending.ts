import {
  ActivityFailure,
  ApplicationFailure,
  TemporalFailure,
  TimeoutFailure,
  isCancellation,
} from '@temporalio/workflow';
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
  // A remote activity's failure comes wrapped in an ActivityFailure, a local one's comes as it is.
  if (!(error instanceof TemporalFailure)) return undefined;
  const { cause = error } = error;
  if (cause instanceof ApplicationFailure) {
    if (cause.type === 'RunEnded') return 'quiet';
    return {
      status: cause.nonRetryable === true ? 'Failed' : 'FailedRetryable',
      latest_error: `${cause.type ?? 'Error'}: ${cause.message}`,
    };
  }
  return { status: 'FailedRetryable', latest_error: lastErrorBefore(cause) ?? explain(error, cause) };
}

/** What the attempt before a time-out reported. The SDK leaves it out of the error but keeps the server's failure. */
function lastErrorBefore(timeout: Error): string | undefined {
  const last = timeout instanceof TimeoutFailure ? timeout.failure?.cause : undefined;
  const type = last?.applicationFailureInfo?.type;
  return type && last.message ? `${type}: ${last.message}` : undefined;
}

function explain(error: TemporalFailure, cause: Error): string {
  if (cause instanceof TimeoutFailure && cause.timeoutType === 'HEARTBEAT')
    return 'WorkerLost: The worker that exported this interval stopped answering.';
  const step = error instanceof ActivityFailure ? `The step ${error.activityType}` : 'Asking the source';
  return `BudgetExceeded: ${step} did not end within its time.`;
}
