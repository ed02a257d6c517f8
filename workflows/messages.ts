/** A signal as a schedule workflow received it. */
export interface ReceivedSignal {
  readonly name: string;
  /** Place among all signals of the workflow's chain of executions, so that a repeat is recognised. */
  readonly ordinal: number;
  /** Identity of the chain: the first execution's run id, which a reset keeps. */
  readonly chain: string;
  /** What was sent with it: anything, when it was sent by hand. */
  readonly input: unknown;
}

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

/** Names under which the workflows are registered, as people see them in the Temporal UI. */
export const workflowTypes = {
  schedule: 'batchExportSchedule',
  run: 'batchExportRun',
  backfill: 'batchExportBackfill',
  destinationTest: 'batchExportDestinationTest',
  upkeep: 'batchExportUpkeep',
  notification: 'batchExportNotification',
  query: 'query',
} as const;

/** Whether a value is an id as exportd makes them; a workflow that is started by hand gets anything. */
export const isId = (value: unknown): value is string =>
  typeof value === 'string' && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(value);

/** Whether a value is what a schedule starts with, or goes on with; one that is started by hand gets anything. */
export const isScheduleInput = (value: unknown): value is ScheduleInput =>
  isObject(value) &&
  isId(value.batch_export_id) &&
  (value.ordinal === undefined || Number.isSafeInteger(value.ordinal)) &&
  (value.signals === undefined || (Array.isArray(value.signals) && value.signals.every(isReceivedSignal)));

/** The same of a run. */
export const isRunInput = (value: unknown): value is RunInput =>
  isObject(value) && isId(value.run_id) && isObject(value.limits);

const isReceivedSignal = (value: unknown): value is ReceivedSignal =>
  isObject(value) &&
  typeof value.name === 'string' &&
  Number.isSafeInteger(value.ordinal) &&
  typeof value.chain === 'string';

/** The command that a signal names, as the facade's do; undefined for one that was sent by hand without. */
export const commandIdOf = (input: unknown): string | undefined =>
  isObject(input) && typeof input.command_id === 'string' ? input.command_id : undefined;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;

/** The signal that says nothing but "look again". */
export const wakeSignal = 'wake';

/** Workflow id of an export's schedule. */
export const scheduleWorkflowId = (batchExportId: string): string => `batch-export-${batchExportId}`;

/** Workflow id of a backfill. */
export const backfillWorkflowId = (backfillId: string): string => `batch-export-backfill-${backfillId}`;

/** Workflow id of a test of a destination. */
export const destinationTestWorkflowId = (testId: string): string =>
  `batch-export-destination-test-${testId}`;

/** Workflow id of the delivery of a notification to a webhook. */
export const notificationWorkflowId = (deliveryId: string): string => `${notificationPrefix}${deliveryId}`;

/** The delivery that such a workflow id names; undefined for any other. */
export function notificationIdIn(workflowId: string): string | undefined {
  const id = workflowId.slice(notificationPrefix.length);
  return workflowId.startsWith(notificationPrefix) && isId(id) ? id : undefined;
}

const notificationPrefix = 'batch-export-notification-';

/** Workflow id of the upkeep: one for each deployment in a namespace, which its task queues tell apart. */
export const upkeepWorkflowId = (taskQueuePrefix: string): string => `${taskQueuePrefix}-upkeep`;

/** Workflow id of a query in the background. */
export const queryWorkflowId = (query: { readonly team_id: number; readonly id: string }): string =>
  `query-${query.team_id}-${query.id}`;

/** Workflow id of a run: one for each interval of an export, so that Temporal too runs one at a time. */
export const runWorkflowId = (run: {
  readonly batch_export_id: string;
  readonly data_interval_start: string;
  readonly data_interval_end: string;
}): string =>
  `batch-export-${run.batch_export_id}-${compactTime(run.data_interval_start)}-${compactTime(run.data_interval_end)}`;

/** `2026-11-01T10:00:00.000Z` as `20261101T100000Z`, as in the keys of files. */
const compactTime = (time: string): string => time.replace(/[-:]|\.\d+/g, '');
