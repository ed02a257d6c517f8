import { isId } from './workflow_ids.ts';

/** Whether a value has fields. Arrays have, too. */
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;

/** A signal as a schedule workflow received it. */
export interface ReceivedSignal {
  readonly name: string;
  /** Position among all signals of the workflow's chain of executions. Identifies a repeated signal. */
  readonly ordinal: number;
  /** Identity of the chain: the run id of its first execution, which a reset keeps. */
  readonly chain: string;
  /** The signal's input. Nothing is known of it when the signal was sent manually. */
  readonly input: unknown;
  /** Who sent a manual signal, as the sender told Temporal; absent if it told nothing. */
  readonly identity?: string;
}

/** The signal that wakes a schedule or a backfill so that it checks the control database. It has no input. */
export const wakeSignal = 'wake';

/** Returns the command id in a signal that the API server sent; undefined for a manual signal without one. */
export const commandIdOf = (input: unknown): string | undefined =>
  isObject(input) && typeof input.command_id === 'string' ? input.command_id : undefined;

const isReceivedSignal = (value: unknown): value is ReceivedSignal =>
  isObject(value) &&
  typeof value.name === 'string' &&
  Number.isSafeInteger(value.ordinal) &&
  typeof value.chain === 'string';

/** Input of a schedule. All fields but the id are state that one execution carries over to the next. */
export interface ScheduleInput {
  readonly batch_export_id: string;
  /** How many signals the chain of executions has received. */
  readonly ordinal?: number;
  /** Manual signals that were received but are not stored yet, and signals that name a command. */
  readonly signals?: readonly ReceivedSignal[];
  /** Whether the previous execution continued as new while more signals were arriving than one step takes. */
  readonly is_flooding?: boolean;
}

/** Limits of a run. Fixed at its start, so that its history replays after the settings change. */
export interface RunLimits {
  /** Limit of the wait for open transactions of the source. */
  readonly settle_timeout_ms: number;
  /** How long the run may wait for its source. The time that its tasks wait for a free slot is not limited. */
  readonly timeout_ms: number;
  /** Limit of one activity, including all its attempts and the delays between them, but not the wait for a free slot. */
  readonly retry_budget_ms: number;
  readonly retry_initial_ms: number;
  readonly retry_max_ms: number;
  readonly heartbeat_timeout_ms: number;
  /** How many ranges of its interval are exported at the same time. */
  readonly ranges_at_once: number;
  /** The export activity of an interval with at most so many rows publishes it too. */
  readonly publish_with_rows: number;
}

/** Input of a run: ids and times; no config, secrets or rows. */
export interface RunInput {
  readonly run_id: string;
  readonly batch_export_id: string;
  readonly data_interval_start: string;
  readonly data_interval_end: string;
  readonly export_task_queue: string;
  readonly limits: RunLimits;
  /** Temporal has delayed the first task of the run by EXPORTD_SETTLE_DELAY. */
  readonly has_waited_to_settle?: boolean;
  /** What the chain's first execution counted, and in how many ranges it exports it; absent in that execution. */
  readonly counted?: { readonly rows: number; readonly ranges: number };
  /** What the Temporal UI says of the run, in Markdown: a continued execution has no static details. */
  readonly details?: string | undefined;
}

export interface BackfillInput {
  readonly backfill_id: string;
}

/** Input of a job. What was asked, and the answer, are in the control database. */
export interface JobInput {
  readonly job_id: string;
  readonly task_queue: string;
  /** Limit of one attempt. */
  readonly timeout_ms: number;
  readonly heartbeat_timeout_ms: number;
  readonly attempts: number;
  /** What is done, for the activity in the Temporal UI. */
  readonly summary?: string;
}

/** A maintenance task that failed and waits for its next attempt. */
export interface DelayedTask {
  readonly name: string;
  /** Consecutive failures. */
  readonly failures: number;
  /** When it is retried, in milliseconds since 1970. */
  readonly retry_at_ms: number;
  readonly reason: string;
}

export interface MaintenanceInput {
  readonly task_queue: string;
  /** Failed tasks that one execution carries over to the next. */
  readonly delayed_tasks?: readonly DelayedTask[];
}

/** Whether a value is the input of a schedule. Checks the input of manually started workflows. */
export const isScheduleInput = (value: unknown): value is ScheduleInput =>
  isObject(value) &&
  isId(value.batch_export_id) &&
  (value.ordinal === undefined || Number.isSafeInteger(value.ordinal)) &&
  (value.signals === undefined || (Array.isArray(value.signals) && value.signals.every(isReceivedSignal)));

const runLimits: readonly (keyof RunLimits)[] = [
  'settle_timeout_ms',
  'timeout_ms',
  'retry_budget_ms',
  'retry_initial_ms',
  'retry_max_ms',
  'heartbeat_timeout_ms',
  'ranges_at_once',
  'publish_with_rows',
];

/** Whether a value names a run and its limits. Checks the input of manually started workflows. */
export function isRunInput(value: unknown): value is RunInput {
  if (!isObject(value) || !isId(value.run_id) || !isObject(value.limits)) return false;
  const { limits } = value;
  return runLimits.every((name) => typeof limits[name] === 'number');
}
