import type { ActivityOptions, LocalActivityOptions } from '@temporalio/workflow';
import type { UpkeepRound } from '../activities/maintenance.ts';
import type { UpkeepKind } from '../src/decisions/upkeep_due.ts';
import type {
  DestinationTestInput,
  NotificationInput,
  QueryInput,
  RunInput,
  RunLimits,
} from '../src/contract/workflow_inputs.ts';

/**
 * Recording facts and starting workflows. Tried for ever: there is nothing else to do until the database is back, and
 * every one of them may be repeated.
 */
export const recordingPolicy: LocalActivityOptions = {
  // An append takes milliseconds; a connection that hangs is given up before the pool is full of them.
  startToCloseTimeout: '30s',
  // Short waits inside the workflow task, so that a restart of the database is hardly noticed; longer ones as timers
  // of the server, so that an outage keeps no workflow task open.
  localRetryThreshold: '5s',
  retry: { initialInterval: '100ms', backoffCoefficient: 2, maximumInterval: '10s' },
};

/** The same on the task queue of the workflow, where a worker that dies is noticed by the time-out alone. */
export const remoteRecordingPolicy: ActivityOptions = {
  startToCloseTimeout: '10s',
  retry: { initialInterval: '100ms', backoffCoefficient: 2, maximumInterval: '10s' },
};

/** Asking the source. What outlasts the budget ends the run FailedRetryable, so that the interval is tried anew. */
export const sourcePolicy = (limits: RunLimits): LocalActivityOptions => ({
  // The statement's own time-out comes first, so that PostgreSQL and not the worker ends it.
  startToCloseTimeout: limits.statement_timeout_ms + 10_000,
  scheduleToCloseTimeout: limits.budget_ms,
  localRetryThreshold: '5s',
  retry: retryWithin(limits),
});

/** Moving rows and publishing them, on the task queue of the export workers. */
export const exportPolicy = ({ limits, export_task_queue }: RunInput): ActivityOptions => ({
  taskQueue: export_task_queue,
  // One attempt may use the whole budget: how long an interval takes depends on its rows alone, and a stalled attempt
  // is found by its heartbeat.
  scheduleToCloseTimeout: limits.budget_ms,
  heartbeatTimeout: limits.heartbeat_timeout_ms,
  // The run ends only after the activity has let go, so the next run of the interval never meets it.
  cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  retry: retryWithin(limits),
});

/** Testing a destination. It ends by itself in time; whoever waits for the answer asks again rather than waits for a retry. */
export const testPolicy = ({ longest_ms }: DestinationTestInput): LocalActivityOptions => ({
  startToCloseTimeout: longest_ms,
  retry: { maximumAttempts: 1 },
});

/**
 * One attempt to tell a webhook something. What fails here is the control database or the worker: a receiver that does
 * not answer is an outcome, and waiting for the next attempt the workflow's.
 */
export const deliveryPolicy = ({ task_queue, longest_ms }: NotificationInput): ActivityOptions => ({
  taskQueue: task_queue,
  startToCloseTimeout: longest_ms,
  retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '1m' },
});

/**
 * Running a query. An error of the query is an outcome; what fails here is the database or the worker, and a worker
 * that was killed is noticed by its heartbeat. How long it waits for a place among the queries is not bounded: it can
 * be cancelled meanwhile.
 */
export const queryPolicy = ({
  task_queue,
  longest_ms,
  heartbeat_timeout_ms,
}: QueryInput): ActivityOptions => ({
  taskQueue: task_queue,
  startToCloseTimeout: longest_ms,
  heartbeatTimeout: heartbeat_timeout_ms,
  // The workflow ends only after the statement has.
  cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  retry: { initialInterval: '200ms', backoffCoefficient: 2, maximumInterval: '10s', maximumAttempts: 20 },
});

/** Places for deliveries in a worker, beside those of the upkeep: receivers that hang keep no bucket waiting for long. */
export const deliveriesAtOnce = 16;

/** Ranges of one run under way at once: enough for several workers, and no queue of its own before those of others. */
export const rangesAtOnce = 4;

const retryWithin = (limits: RunLimits) => ({
  initialInterval: limits.retry_initial_ms,
  backoffCoefficient: 2,
  maximumInterval: limits.retry_max_ms,
});

/** A schedule and a backfill look again after this long at the latest, should a wake-up be lost with an outage. */
export const longestSleepMs = { schedule: 3_600_000, backfill: 60_000 } as const;

/** How soon a run is tried to start again whose interval's last execution has not let go yet. */
export const busyIntervalMs = 2_000;

/** A wait for open transactions is polled as often as a tenth of its length so far, to bound the history. */
export const barrierPollMs = (asked: number, waited: number): number =>
  Math.max(asked, Math.min(30_000, waited / 10));

/** How many signals sent by hand go into one step, each of at most a few kilobytes. */
export const signalsPerStep = 50;

/** With no more of them waiting a schedule continues as new in a flood: Temporal takes 2 MB of input at most. */
export const carriedSignals = 200;

/** Signals that name a command go on with it at most so many: all but a few name one that is stored, and need nothing. */
export const carriedNamed = 1_000;

/** As many signals since the last step announce a flood: far fewer than the 100 that the server keeps for an open task. */
export const floodSignals = 10;

/** Commands decided in one step, each in some ten milliseconds; few while a workflow task is open. */
export const commandsPerLocalStep = 10;
export const commandsPerRemoteStep = 50;

/** Tasks of the upkeep under way at once: a bucket that does not answer keeps one place busy, not all. */
export const upkeepTasksAtOnce = 4;

/** Each is tried once: what fails is put off by the workflow, for longer than an activity should wait. */
export const upkeepPolicy: Readonly<Record<UpkeepKind, (round: UpkeepRound) => ActivityOptions>> = {
  cleanUpExport: (round) => ({
    ...triedOnce(round),
    // It begins nothing more after three quarters of a minute, and waits for no server for longer than 100 s.
    startToCloseTimeout: '2m',
  }),
  recheckRuns: (round) => ({
    ...triedOnce(round),
    // The last count begins within three quarters of a minute; PostgreSQL ends it.
    startToCloseTimeout: round.statement_timeout_ms + 60_000,
  }),
};

const triedOnce = ({ heartbeat_timeout_ms }: UpkeepRound): ActivityOptions => ({
  heartbeatTimeout: heartbeat_timeout_ms,
  retry: { maximumAttempts: 1 },
});
