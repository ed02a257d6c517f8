import { isObject } from './is_object.ts';
import { isReceivedSignal, type ReceivedSignal } from './signals.ts';
import { isId } from './workflow_ids.ts';

/** What a schedule workflow starts with; members beside the id are what one execution hands to the next. */
export interface ScheduleInput {
  readonly batch_export_id: string;
  /** How many signals the chain of executions has received. */
  readonly ordinal?: number;
  /** Signals sent by hand that were received and not yet stored. */
  readonly signals?: readonly ReceivedSignal[];
  /** Whether it continues as new in the midst of a flood. */
  readonly flood?: boolean;
}

/** Waits of a run, in milliseconds; fixed when it starts, so that a history replays under other settings. */
export interface RunLimits {
  /** The longest wait for open transactions of the source. */
  readonly settle_max_ms: number;
  /** The longest that one activity goes on, all its attempts and the waits between them included. */
  readonly budget_ms: number;
  readonly retry_initial_ms: number;
  readonly retry_max_ms: number;
  readonly heartbeat_timeout_ms: number;
  /** The longest that one statement on the source takes. */
  readonly statement_timeout_ms: number;
}

/** What a run workflow starts with: ids and times, no config, no secret, no row. */
export interface RunInput {
  readonly run_id: string;
  readonly batch_export_id: string;
  readonly data_interval_start: string;
  readonly data_interval_end: string;
  readonly export_task_queue: string;
  readonly limits: RunLimits;
  /** How many rows were counted by the execution that handed the export over to this one; absent in the first. */
  readonly rows?: number;
  /** In how many ranges that one exports them; absent with `rows`. */
  readonly ranges?: number;
}

/** What a backfill workflow starts with. */
export interface BackfillInput {
  readonly backfill_id: string;
}

/** What the test of a destination starts with; its config waits in the control database. */
export interface DestinationTestInput {
  readonly test_id: string;
  /** The longest that its steps take. */
  readonly longest_ms: number;
}

/** What the delivery of a notification starts with; what is told waits in the control database. */
export interface NotificationInput {
  readonly delivery_id: string;
  readonly task_queue: string;
  /** The longest that one attempt takes. */
  readonly longest_ms: number;
}

/** What a query in the background starts with: ids and limits. Its text, its rows and its errors stay in PostgreSQL. */
export interface QueryInput {
  readonly execution_id: string;
  readonly task_queue: string;
  /** The longest that one attempt takes. */
  readonly longest_ms: number;
  readonly heartbeat_timeout_ms: number;
}

/** A task of the upkeep that failed, and when it is tried again. */
export interface PutOffTask {
  readonly name: string;
  /** How often it failed in a row. */
  readonly failures: number;
  /** Milliseconds since 1970. */
  readonly until_ms: number;
  readonly reason: string;
}

/** What the upkeep starts with. */
export interface UpkeepInput {
  /** Absent in executions that began before the upkeep had a queue of its own; they name that of the exports. */
  readonly upkeep_task_queue?: string;
  readonly export_task_queue?: string;
  /** What one execution hands to the next. */
  readonly put_off?: readonly PutOffTask[];
}

/** Whether a value is what a schedule starts with, or goes on with; one that is started by hand gets anything. */
export const isScheduleInput = (value: unknown): value is ScheduleInput =>
  isObject(value) &&
  isId(value.batch_export_id) &&
  (value.ordinal === undefined || Number.isSafeInteger(value.ordinal)) &&
  (value.signals === undefined || (Array.isArray(value.signals) && value.signals.every(isReceivedSignal)));

/** The same of a run. */
export const isRunInput = (value: unknown): value is RunInput =>
  isObject(value) && isId(value.run_id) && isObject(value.limits);
