import { Context, type Info } from '@temporalio/activity';

/** What an activity uses of Temporal's context. */
export interface ActivityContext {
  heartbeat(details?: unknown): void;
  readonly cancellationSignal: AbortSignal;
  /** The attempt, and when Temporal stops retrying the activity. Tests may leave it out. */
  readonly info?: Pick<Info, 'attempt' | 'scheduledTimestampMs' | 'scheduleToCloseTimeoutMs'> &
    Partial<Pick<Info, 'isLocal' | 'startToCloseTimeoutMs' | 'heartbeatDetails' | 'retryPolicy'>>;
}

/** The context of the running activity. */
export const currentActivity = (): ActivityContext => Context.current();

/** Several, so that one lost or late heartbeat does not end the attempt. */
const heartbeatsPerTimeout = 4;
/** Cancellations arrive with responses to heartbeats, and a person who cancels a run waits for them. */
const maxHeartbeatIntervalMs = 1_000;

/** Milliseconds between two heartbeats of an activity, for its timer and for the throttling of the SDK. */
export const heartbeatIntervalMs = (heartbeatTimeoutMs: number): number =>
  Math.min(maxHeartbeatIntervalMs, heartbeatTimeoutMs / heartbeatsPerTimeout);

/**
 * Runs `work` with heartbeats on a timer, so that an activity that waits for a slow server is not taken for dead. Work that
 * ends before the first tick costs no heartbeat. The signal passed to `work` is aborted on cancellation, which arrives
 * with heartbeats only, and when `work` has ended.
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
