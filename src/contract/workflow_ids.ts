/** Names under which the workflows are registered, as the Temporal UI shows them. */
export const workflowTypes = {
  schedule: 'batchExportSchedule',
  run: 'batchExportRun',
  backfill: 'batchExportBackfill',
  destinationTest: 'batchExportDestinationTest',
  maintenance: 'batchExportMaintenance',
  notification: 'batchExportNotification',
  backgroundQuery: 'backgroundQuery',
  verification: 'batchExportVerification',
} as const;

/** The name of a workflow. */
export type WorkflowType = (typeof workflowTypes)[keyof typeof workflowTypes];

/** Whether a value is a UUID, as all ids of exportd are. Checks the input of manually started workflows. */
export const isId = (value: unknown): value is string =>
  typeof value === 'string' && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(value);

/** The setting that distinguishes the deployments in a Temporal namespace. */
export interface DeploymentSettings {
  readonly EXPORTD_TASK_QUEUE_PREFIX: string;
}

/** What identifies the workflow of a run. */
export interface RunInterval {
  readonly batch_export_id: string;
  readonly data_interval_start: string;
  readonly data_interval_end: string;
}

/** The workflow ids of a deployment. */
interface WorkflowIds {
  /** Id of an export's schedule. */
  readonly schedule: (batchExportId: string) => string;
  /** Id of a backfill. */
  readonly backfill: (backfillId: string) => string;
  /** Id of a run: one per interval of an export, so Temporal also runs only one at a time. */
  readonly run: (run: RunInterval) => string;
  /** Id of a background query. Users choose the ids of queries. */
  readonly query: (query: { readonly team_id: number; readonly id: string }) => string;
  /** Id of a destination test. */
  readonly destinationTest: (testId: string) => string;
  /** Id of the delivery of a notification to a webhook. */
  readonly delivery: (deliveryId: string) => string;
  /** The delivery id in the workflow id of a delivery; undefined for any other workflow. */
  readonly deliveryIdOf: (workflowId: string) => string | undefined;
  /** Id of a verification. */
  readonly verification: (verificationId: string) => string;
  /** Id of the maintenance, one per deployment. */
  readonly maintenance: () => string;
}

/** Its workflow ids have no prefix, so that a person can type them: `batch-export-<id>`. */
const defaultDeployment = 'exportd';

/**
 * The workflow ids of a deployment. Ids are unique within a namespace, so every id of a deployment starts with its task
 * queue prefix, unless that is the default.
 */
export function workflowIds({ EXPORTD_TASK_QUEUE_PREFIX: deployment }: DeploymentSettings): WorkflowIds {
  const prefix = deployment === defaultDeployment ? '' : `${deployment}-`;
  const deliveryPrefix = `${prefix}batch-export-notification-`;
  return {
    schedule: (batchExportId) => `${prefix}batch-export-${batchExportId}`,
    backfill: (backfillId) => `${prefix}batch-export-backfill-${backfillId}`,
    run: ({ batch_export_id, data_interval_start, data_interval_end }) =>
      `${prefix}batch-export-run-${batch_export_id}-${compactTime(data_interval_start)}-${compactTime(data_interval_end)}`,
    query: ({ team_id, id }) => `${prefix}query-${team_id}-${id}`,
    destinationTest: (testId) => `${prefix}batch-export-destination-test-${testId}`,
    verification: (verificationId) => `${prefix}batch-export-verification-${verificationId}`,
    delivery: (deliveryId) => `${deliveryPrefix}${deliveryId}`,
    deliveryIdOf: (workflowId) => {
      const id = workflowId.slice(deliveryPrefix.length);
      return workflowId.startsWith(deliveryPrefix) && isId(id) ? id : undefined;
    },
    maintenance: () => `${prefix}batch-export-maintenance`,
  };
}

/** Formats `2026-11-01T10:00:00.000Z` as `20261101T100000Z`, as file keys do. */
const compactTime = (time: string): string => time.replace(/[-:]|\.\d+/g, '');
