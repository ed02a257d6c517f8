import type { Settings } from '../../config/settings.ts';
import type { RunInput } from '../../contract/workflow_inputs.ts';
import type { StartableRun } from '../../decisions/startable_runs.ts';
import { nominalLengthMs } from '../../domain/intervals.ts';
import { taskQueues } from '../task_queues.ts';

/** The settings that limit a run. */
export type RunSettings = Pick<
  Settings,
  | 'EXPORTD_RUN_TIMEOUT'
  | 'EXPORTD_ACTIVITY_SCHEDULE_TO_CLOSE_TIMEOUT'
  | 'EXPORTD_ACTIVITY_RETRY_INITIAL'
  | 'EXPORTD_ACTIVITY_RETRY_MAX'
  | 'EXPORTD_HEARTBEAT_TIMEOUT'
  | 'EXPORTD_RANGES_AT_ONCE'
  | 'EXPORTD_SETTLE_TIMEOUT'
>;

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** Days with a clock change are at most this much shorter or longer. */
const clockChange = 2 * hour;

/**
 * Maximum duration of a run in milliseconds, without the time that its tasks wait for a free slot: long enough for many
 * attempts. It also depends on the length of the run's interval, which may differ from the export's current interval or
 * bridge two of them.
 */
export function runTimeoutMs(
  run: Pick<StartableRun, 'interval' | 'data_interval_start' | 'data_interval_end'>,
  settings: RunSettings,
): number {
  if (settings.EXPORTD_RUN_TIMEOUT !== undefined) return settings.EXPORTD_RUN_TIMEOUT;
  return Math.max(timeoutFor(nominalLengthMs(run.interval)), timeoutFor(lengthMs(run)));
}

function timeoutFor(length: number): number {
  if (length < hour) return Math.max(20 * minute, length);
  if (length < day - clockChange) return 6 * hour;
  return length <= day + clockChange ? 24 * hour : 72 * hour;
}

const lengthMs = (run: Pick<StartableRun, 'data_interval_start' | 'data_interval_end'>): number =>
  new Date(run.data_interval_end).getTime() - new Date(run.data_interval_start).getTime();

/**
 * How long the first task of a run waits in Temporal, in milliseconds: that of an interval that has ended just now would only
 * find out that its source has not settled. Always the whole delay, so that runs that jitter has spread do not meet again.
 */
export const startDelayOf = (
  { data_interval_end }: Pick<StartableRun, 'data_interval_end'>,
  { EXPORTD_SETTLE_DELAY: delay }: Pick<Settings, 'EXPORTD_SETTLE_DELAY'>,
  now = Date.now(),
): number => (Date.parse(data_interval_end) + delay > now ? delay : 0);

/** Larger intervals are published by an activity of their own, which has the whole retry budget for it. */
const maxRowsToPublish = 100_000;

/** Creates the input of a run's execution. */
export function runInput(
  run: StartableRun,
  settings: RunSettings & Pick<Settings, 'EXPORTD_TASK_QUEUE_PREFIX'>,
): RunInput {
  const timeout = runTimeoutMs(run, settings);
  return {
    run_id: run.run_id,
    batch_export_id: run.batch_export_id,
    data_interval_start: run.data_interval_start,
    data_interval_end: run.data_interval_end,
    export_task_queue: taskQueues(settings).export,
    limits: {
      settle_timeout_ms: Math.min(settings.EXPORTD_SETTLE_TIMEOUT, lengthMs(run)),
      timeout_ms: timeout,
      retry_budget_ms: Math.min(
        settings.EXPORTD_ACTIVITY_SCHEDULE_TO_CLOSE_TIMEOUT ?? timeout / 2,
        timeout / 2,
      ),
      retry_initial_ms: settings.EXPORTD_ACTIVITY_RETRY_INITIAL,
      retry_max_ms: Math.max(settings.EXPORTD_ACTIVITY_RETRY_MAX, settings.EXPORTD_ACTIVITY_RETRY_INITIAL),
      heartbeat_timeout_ms: settings.EXPORTD_HEARTBEAT_TIMEOUT,
      ranges_at_once: settings.EXPORTD_RANGES_AT_ONCE,
      publish_with_rows: maxRowsToPublish,
    },
  };
}
