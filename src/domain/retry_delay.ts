/** How long a run waits before it is tried again. */

/** The delays and the limit of automatic retries. */
export interface RetryPolicy {
  readonly initialSeconds: number;
  readonly maxSeconds: number;
  readonly maxRetries: number;
}

/** Seconds until the automatic retry of a run that is retry `retryNumber` itself; null if the limit is reached. */
export function retryDelaySeconds(retryNumber: number, policy: RetryPolicy): number | null {
  if (retryNumber >= policy.maxRetries) return null;
  return Math.min(policy.initialSeconds * 2 ** retryNumber, policy.maxSeconds);
}

/** The same for a run whose destination did not respond: its retry does not count, so that the limit is never reached. */
export const outageRetryDelaySeconds = (retryNumber: number, policy: RetryPolicy): number | null =>
  policy.maxRetries === 0 ? null : retryDelaySeconds(Math.min(retryNumber, policy.maxRetries - 1), policy);
