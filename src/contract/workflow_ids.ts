/** Whether a value is a UUID, as all ids of exportd are. Checks the input of manually started workflows. */
export const isId = (value: unknown): value is string =>
  typeof value === 'string' && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(value);

/** Workflow id of an export's schedule. */
export const scheduleWorkflowId = (batchExportId: string): string => `batch-export-${batchExportId}`;

/** Workflow id of a backfill. */
export const backfillWorkflowId = (backfillId: string): string => `batch-export-backfill-${backfillId}`;

/** Workflow id of a destination test. */
export const destinationTestWorkflowId = (testId: string): string =>
  `batch-export-destination-test-${testId}`;

/** Workflow id of the delivery of a notification to a webhook. */
export const deliveryWorkflowId = (deliveryId: string): string => `${deliveryPrefix}${deliveryId}`;

/** Returns the delivery id in the workflow id of a delivery; undefined for any other workflow. */
export function deliveryIdOf(workflowId: string): string | undefined {
  const id = workflowId.slice(deliveryPrefix.length);
  return workflowId.startsWith(deliveryPrefix) && isId(id) ? id : undefined;
}

const deliveryPrefix = 'batch-export-notification-';

/** Workflow id of the maintenance: one per deployment. The task queue prefix distinguishes deployments in a namespace. */
export const maintenanceWorkflowId = (taskQueuePrefix: string): string => `${taskQueuePrefix}-maintenance`;

/** Workflow id of a background query. */
export const queryWorkflowId = (query: { readonly team_id: number; readonly id: string }): string =>
  `query-${query.team_id}-${query.id}`;

/** Workflow id of a run: one per interval of an export, so Temporal also runs only one at a time. */
export const runWorkflowId = (run: {
  readonly batch_export_id: string;
  readonly data_interval_start: string;
  readonly data_interval_end: string;
}): string =>
  `batch-export-${run.batch_export_id}-${compactTime(run.data_interval_start)}-${compactTime(run.data_interval_end)}`;

/** Formats `2026-11-01T10:00:00.000Z` as `20261101T100000Z`, as file keys do. */
const compactTime = (time: string): string => time.replace(/[-:]|\.\d+/g, '');
