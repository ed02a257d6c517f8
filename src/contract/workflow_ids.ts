/** Whether a value is an id as exportd makes them; a workflow that is started by hand gets anything. */
export const isId = (value: unknown): value is string =>
  typeof value === 'string' && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(value);

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
