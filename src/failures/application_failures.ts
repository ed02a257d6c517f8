import { ApplicationFailure, ApplicationFailureCategory, CancelledFailure } from '@temporalio/common';
import { isOperatorFault, operatorFaultDetails } from '../contract/operator_fault.ts';
import type { Logger } from '../telemetry/logger.ts';
import { classifyError } from './classify_error.ts';
import { nextRetryDelayOf } from './next_retry_delay.ts';

/**
 * Converts an activity's error to a Temporal failure: its type, a message for users, and whether Temporal retries. The
 * original error is not attached: its text may contain a secret or a row, and histories store failures.
 */
export function toApplicationFailure(error: unknown): ApplicationFailure {
  if (error instanceof ApplicationFailure) return error;
  const { type, message, permanent, owner, retry_delay_ms } = classifyError(error);
  return ApplicationFailure.create({
    type,
    message,
    nonRetryable: permanent,
    ...(owner === 'operator' && { details: [operatorFaultDetails] }),
    // An error that knows its end is expected: the SDK would log each attempt of each run.
    ...(retry_delay_ms === undefined
      ? {}
      : { nextRetryDelay: nextRetryDelayOf(retry_delay_ms), category: ApplicationFailureCategory.BENIGN }),
  });
}

/** The operator's fault that an activity failed with; undefined for any other failure. */
export function operatorFaultOf(failure: unknown): { type: string; message: string } | undefined {
  if (!(failure instanceof ApplicationFailure) || !isOperatorFault(failure.details)) return undefined;
  return { type: failure.type ?? 'Error', message: failure.message };
}

/** A function that workflows can call. */
export type Activity = (...input: never[]) => Promise<unknown>;

/** Wraps activities so that they throw application failures. Cancellations pass unchanged. */
export function withApplicationFailures<Activities extends Record<string, Activity>>(
  activities: Activities,
  logger: Logger,
): Activities {
  const wrap =
    (name: string, activity: Activity): Activity =>
    async (...input) => {
      try {
        return await activity(...input);
      } catch (error) {
        if (isCancellation(error)) throw error;
        const failure = toApplicationFailure(error);
        if (failure.type === 'UnexpectedError')
          logger.error({ activity: name, stack: stackFramesOf(error) }, failure.message);
        throw failure;
      }
    };
  const wrapped = Object.entries(activities).map(([name, activity]) => [name, wrap(name, activity)] as const);
  // Each name keeps its function; the wrapper does not change its type.
  return Object.fromEntries(wrapped) as Activities;
}

/** A cancellation, or the AbortError that a cancelled wait or request throws: Temporal recognizes both. */
const isCancellation = (error: unknown): boolean =>
  error instanceof CancelledFailure || (Error.isError(error) && error.name === 'AbortError');

/** The stack trace of an error without its message, which may contain a row. */
export const stackFramesOf = (error: unknown): string[] =>
  error instanceof Error ? (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line)) : [];
