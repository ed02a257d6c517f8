import { Context } from '@temporalio/activity';

/** What an activity needs of Temporal: to say that it is alive and how far it came, and to hear that it must stop. */
export interface ActivityContext {
  heartbeat(details?: unknown): void;
  readonly cancellationSignal: AbortSignal;
}

/** The context of the activity that is running. */
export const currentActivity = (): ActivityContext => Context.current();

/** Heartbeats per heartbeat timeout, so that one that is lost or late does not end the attempt. */
const heartbeatsPerTimeout = 4;
/** Cancellation arrives with the answer to a heartbeat, and a person who cancels a run waits for it. */
const longestHeartbeatIntervalMs = 1_000;

/** Milliseconds between two heartbeats of an activity, for the timer that makes them and the SDK that sends them. */
export const heartbeatIntervalMs = (heartbeatTimeoutMs: number): number =>
  Math.min(longestHeartbeatIntervalMs, heartbeatTimeoutMs / heartbeatsPerTimeout);

/**
 * Runs `work` with a heartbeat on a timer, so that waiting for a slow server counts as being alive too. Cancellation
 * arrives only with heartbeats; the signal that `work` gets is aborted by it, and as soon as `work` has ended. What
 * ends before the first beat of the timer costs Temporal none.
 */
export async function withHeartbeats<Result>(
  context: ActivityContext,
  heartbeatTimeoutMs: number,
  progress: () => unknown,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const ended = new AbortController();
  const timer = setInterval(() => context.heartbeat(progress()), heartbeatIntervalMs(heartbeatTimeoutMs));
  try {
    return await work(AbortSignal.any([context.cancellationSignal, ended.signal]));
  } finally {
    clearInterval(timer);
    ended.abort();
  }
}
