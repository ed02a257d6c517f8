import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import type { Logger } from '../telemetry/logger.ts';
import { classifyError } from './classify_error.ts';

/**
 * The Temporal failure for an error of an activity: its type, a message for users, and whether Temporal should try
 * again. The original error is not attached: its text may hold a secret or a row, and failures are kept in histories.
 */
export function toApplicationFailure(error: unknown): ApplicationFailure {
  if (error instanceof ApplicationFailure) return error;
  const { type, message, permanent } = classifyError(error);
  return ApplicationFailure.create({ type, message, nonRetryable: permanent });
}

/** A function that workflows can call. */
export type Activity = (...input: never[]) => Promise<unknown>;

/** Activities whose errors leave as failures that Temporal and users understand; a cancellation passes as it is. */
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
          logger.error({ activity: name, frames: stackFramesOf(error) }, failure.message);
        throw failure;
      }
    };
  const wrapped = Object.entries(activities).map(([name, activity]) => [name, wrap(name, activity)] as const);
  // Each name has the same function as before, inside a wrapper that changes nothing of its type.
  return Object.fromEntries(wrapped) as Activities;
}

/** A cancellation, or the AbortError that a cancelled wait or request makes of it: Temporal tells both by themselves. */
const isCancellation = (error: unknown): boolean =>
  error instanceof CancelledFailure || (Error.isError(error) && error.name === 'AbortError');

/** Where an error came from, without its message, which may hold a row. */
export const stackFramesOf = (error: unknown): string[] =>
  error instanceof Error ? (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line)) : [];
