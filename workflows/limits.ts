/** Deliveries that a worker sends at the same time. Receivers that hang must not delay maintenance for long. */
export const maxConcurrentDeliveries = 16;

/** Ranges that a run of version 0.2.0 exports at the same time, whose input does not say it. */
export const formerRangesAtOnce = 4;

/** Maintenance tasks that run at the same time. A bucket that does not respond occupies one slot, not all. */
export const maxConcurrentMaintenanceTasks = 4;

/** How long a schedule or backfill waits for the end of a run at most, in case an outage loses that signal. */
export const maxSleepMs = { schedule: 3_600_000, backfill: 60_000 } as const;

/** How soon a run is started again whose interval still has an open execution. */
export const blockedRunRetryMs = 2_000;

/** Polls a barrier every tenth of the time waited so far, up to 30 s, which bounds the history. */
export const barrierPollMs = (requestedMs: number, waitedMs: number): number =>
  Math.max(requestedMs, Math.min(30_000, waitedMs / 10));

/** How many manual signals one step stores. Each has at most a few kilobytes. */
export const signalsPerStep = 50;

/** A schedule continues as new during a flood only while fewer manual signals wait: Temporal limits inputs to 2 MB. */
export const maxCarriedManualSignals = 200;

/** How many signals with a command id the next execution receives. Nearly all name a stored command and need no work. */
export const maxCarriedCommandSignals = 1_000;

/** This many signals since the last step announce a flood. The server buffers at most 100 for an open workflow task. */
export const floodThreshold = 10;

/** Commands that one step decides, at about 10 ms each. A local step keeps the workflow task open, so it takes few. */
export const commandsPerLocalStep = 10;
export const commandsPerRemoteStep = 50;
