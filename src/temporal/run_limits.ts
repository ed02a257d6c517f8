import type { Settings } from '../config/settings.ts';
import type { StartableRun } from '../decisions/startable_runs.ts';
import { nominalLengthMs } from '../domain/intervals.ts';
import type { RunInput } from '../../workflows/messages.ts';
import { taskQueues } from './task_queues.ts';

/** The settings that bound a run's waits. */
export type RunSettings = Pick<
  Settings,
  | 'EXPORTD_RUN_TIMEOUT_MS'
  | 'EXPORTD_ACTIVITY_BUDGET_MS'
  | 'EXPORTD_ACTIVITY_RETRY_INITIAL_MS'
  | 'EXPORTD_ACTIVITY_RETRY_MAX_MS'
  | 'EXPORTD_HEARTBEAT_TIMEOUT_MS'
  | 'EXPORTD_SETTLE_MAX_MS'
  | 'EXPORTD_SOURCE_STATEMENT_TIMEOUT_MS'
>;

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** How long a run's execution may take, in milliseconds: long enough for many attempts, short against the interval. */
export function executionTimeoutMs(
  { interval }: Pick<StartableRun, 'interval'>,
  settings: RunSettings,
): number {
  if (settings.EXPORTD_RUN_TIMEOUT_MS !== undefined) return settings.EXPORTD_RUN_TIMEOUT_MS;
  const length = nominalLengthMs(interval);
  if (length < hour) return Math.max(20 * minute, length);
  if (length < day) return 6 * hour;
  return length === day ? 24 * hour : 72 * hour;
}

/** The input of a run's execution. */
export function runInput(
  run: StartableRun,
  settings: RunSettings & Pick<Settings, 'EXPORTD_TASK_QUEUE'>,
): RunInput {
  const half = executionTimeoutMs(run, settings) / 2;
  const length = new Date(run.data_interval_end).getTime() - new Date(run.data_interval_start).getTime();
  return {
    run_id: run.run_id,
    batch_export_id: run.batch_export_id,
    data_interval_start: run.data_interval_start,
    data_interval_end: run.data_interval_end,
    export_task_queue: taskQueues(settings).export,
    limits: {
      settle_max_ms: Math.min(settings.EXPORTD_SETTLE_MAX_MS, length),
      // Half at most, so that the failure is told by exportd before Temporal ends the execution.
      budget_ms: Math.min(settings.EXPORTD_ACTIVITY_BUDGET_MS ?? half, half),
      retry_initial_ms: settings.EXPORTD_ACTIVITY_RETRY_INITIAL_MS,
      retry_max_ms: Math.max(
        settings.EXPORTD_ACTIVITY_RETRY_MAX_MS,
        settings.EXPORTD_ACTIVITY_RETRY_INITIAL_MS,
      ),
      heartbeat_timeout_ms: settings.EXPORTD_HEARTBEAT_TIMEOUT_MS,
      statement_timeout_ms: settings.EXPORTD_SOURCE_STATEMENT_TIMEOUT_MS,
    },
  };
}
