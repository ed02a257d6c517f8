import { ApplicationFailure } from '@temporalio/common';
import type { Logger } from '../telemetry/logger.ts';
import { toApplicationFailure, withApplicationFailures, type Activity } from './application_failures.ts';

/**
 * Activities that Temporal retries after every error, permanent ones too. They record decisions: if the control database
 * rejects one for good, a person has to fix the database, and a failed workflow would only lose the command.
 */
export function retryIndefinitely<Activities extends Record<string, Activity>>(
  activities: Activities,
  logger: Logger,
): Activities {
  const retried = Object.entries(withApplicationFailures(activities, logger)).map(
    ([name, activity]) =>
      [
        name,
        async (...input: never[]) => {
          try {
            return await activity(...input);
          } catch (error) {
            const { type, message } = toApplicationFailure(error);
            logger.warn({ activity: name, type }, message);
            throw ApplicationFailure.retryable(message, type);
          }
        },
      ] as const,
  );
  // Each name keeps its function; the wrapper does not change its type.
  return Object.fromEntries(retried) as Activities;
}
