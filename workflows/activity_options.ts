import { defineSearchAttributeKey } from '@temporalio/common';
import type { ActivityOptions, LocalActivityOptions } from '@temporalio/workflow';
import type { MaintenanceRound } from '../activities/maintenance.ts';
import type { JobInput, RunInput, RunLimits } from '../src/contract/workflow_inputs.ts';
import type { MaintenanceKind } from '../src/decisions/due_maintenance.ts';

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

/**
 * After how many steps at most a schedule continues as new once nothing else waits: a worker keeps what each step did, 13 kB,
 * for as long as it caches the execution, and replays all of it when it does not.
 */
export const stepsPerExecution = 16;

/** Commands that one step decides, at about 10 ms each. A local step keeps the workflow task open, so it takes few. */
export const commandsPerLocalStep = 10;
export const commandsPerRemoteStep = 50;

/**
 * Search attributes of workflows, for filters in the Temporal UI. Keyword attributes are scarce: a server with SQL
 * visibility allows ten per namespace. Only an execution can change its own attributes (Temporal 1.29 has no API for
 * it), so a terminated or timed-out execution keeps its last status: see `ExecutionStatus` or the run's row for those.
 */
export const searchAttributes = {
  project: defineSearchAttributeKey('ExportdProject', 'KEYWORD'),
  batchExport: defineSearchAttributeKey('ExportdBatchExport', 'KEYWORD'),
  /** The export's name; SQL visibility allows the 255 characters that a name can have. */
  name: defineSearchAttributeKey('ExportdName', 'KEYWORD'),
  model: defineSearchAttributeKey('ExportdModel', 'KEYWORD'),
  destination: defineSearchAttributeKey('ExportdDestination', 'KEYWORD'),
  intervalStart: defineSearchAttributeKey('ExportdIntervalStart', 'KEYWORD'),
  run: defineSearchAttributeKey('ExportdRun', 'KEYWORD'),
  backfill: defineSearchAttributeKey('ExportdBackfill', 'KEYWORD'),
  status: defineSearchAttributeKey('ExportdStatus', 'KEYWORD'),
};

/**
 * Options of the local activities that record facts and start workflows. They are retried indefinitely: a workflow can
 * do nothing else while the database is down, and every one of them is idempotent.
 */
export const journalOptions: LocalActivityOptions = {
  // An append takes milliseconds. Hanging connections time out before they exhaust the pool.
  startToCloseTimeout: '30s',
  // Retry within the workflow task at first, to ride out a restart of the database. After that use timers of the
  // server, so that an outage keeps no workflow task open.
  localRetryThreshold: '5s',
  retry: { initialInterval: '100ms', backoffCoefficient: 2, maximumInterval: '10s' },
};

/**
 * Options of the same activities on the workflow's task queue. Without heartbeats, only the timeout detects a worker
 * that died.
 */
export const remoteJournalOptions: ActivityOptions = {
  startToCloseTimeout: '10s',
  retry: { initialInterval: '100ms', backoffCoefficient: 2, maximumInterval: '10s' },
};

/**
 * Options of the local activities that query the source. When the retry budget is used up, the run ends as
 * FailedRetryable and the interval is retried by a new run.
 */
export const sourceOptions = (limits: RunLimits): LocalActivityOptions => ({
  // The activity limits its own time, and fails so that the workflow calls it as an ordinary one.
  scheduleToCloseTimeout: limits.retry_budget_ms,
  localRetryThreshold: '5s',
  retry: runRetryPolicy(limits),
});

/**
 * Options of the same activities on the workflow's task queue, for slow ones and after an operator's fault. Temporal keeps
 * the next attempt. No limit for a single one: a fingerprint takes one statement, or many, depending on the number of rows.
 * PostgreSQL and the connection limit each of them.
 */
export const remoteSourceOptions = ({ limits }: RunInput): ActivityOptions => ({
  scheduleToCloseTimeout: limits.retry_budget_ms,
  heartbeatTimeout: limits.heartbeat_timeout_ms,
  cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  retry: runRetryPolicy(limits),
});

/** Options of the activities that export and publish rows, on the task queue of the export workers. */
export const exportOptions = ({ limits, export_task_queue }: RunInput): ActivityOptions => ({
  taskQueue: export_task_queue,
  // Never schedule-to-close: its tasks may wait for a free slot for hours. `openRetryBudget` of src/failures adds up the
  // time of all attempts. Heartbeats detect a stalled one.
  startToCloseTimeout: limits.retry_budget_ms,
  heartbeatTimeout: limits.heartbeat_timeout_ms,
  // The run ends only after the activity has stopped, so it never overlaps with the interval's next run.
  cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  retry: runRetryPolicy(limits),
});

/**
 * Options of a job. An error is an answer; the activity fails only when the control database or the worker does. Heartbeats
 * detect a killed worker.
 */
export const jobOptions = ({
  task_queue,
  timeout_ms,
  heartbeat_timeout_ms,
  attempts,
  summary,
}: JobInput): ActivityOptions => ({
  ...(summary !== undefined && { summary }),
  taskQueue: task_queue,
  startToCloseTimeout: timeout_ms,
  heartbeatTimeout: heartbeat_timeout_ms,
  retry: { initialInterval: '1s', backoffCoefficient: 2, maximumAttempts: attempts },
});

const runRetryPolicy = (limits: RunLimits) => ({
  initialInterval: limits.retry_initial_ms,
  backoffCoefficient: 2,
  maximumInterval: limits.retry_max_ms,
});

/** Options of each maintenance task: a single attempt, because the workflow backs off for longer than an activity should. */
export const maintenanceOptions: Readonly<
  Record<MaintenanceKind, (round: MaintenanceRound) => ActivityOptions>
> = {
  cleanUpExport: (round) => ({
    ...singleAttempt(round),
    // It starts nothing more after 45 s, and no request takes longer than 100 s.
    startToCloseTimeout: '2m',
  }),
  compareIntervals: (round) => comparisonOptions(round),
  checkBarriers: (round) => ({
    ...singleAttempt(round),
    // Short statements; then it may record the barriers of many runs.
    startToCloseTimeout: '10m',
  }),
  settleRuns: (round) => comparisonOptions(round),
};

/** It starts its last comparison within 45 s. PostgreSQL limits the statement, and files may have to be read. */
const comparisonOptions = (round: MaintenanceRound): ActivityOptions => ({
  ...singleAttempt(round),
  startToCloseTimeout: round.statement_timeout_ms + 600_000,
});

const singleAttempt = ({ heartbeat_timeout_ms }: MaintenanceRound): ActivityOptions => ({
  heartbeatTimeout: heartbeat_timeout_ms,
  retry: { maximumAttempts: 1 },
});
