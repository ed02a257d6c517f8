/**
 * A delay before the next attempt, for `nextRetryDelay`, in whole milliseconds and at least one: Temporal takes a delay of
 * zero for a timeout, and ends the activity.
 */
export const nextRetryDelayOf = (delayMs: number): number => Math.max(1, Math.ceil(delayMs));
