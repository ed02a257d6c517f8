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

/** Its workflow ids have no prefix, so that a person can type them: `batch-export-<id>`. */
const defaultDeployment = 'exportd';

/**
 * The workflow ids of a deployment. Ids are unique within a namespace, so every id of a deployment starts with its task
 * queue prefix, unless that is the default.
 */
export function workflowIds({ EXPORTD_TASK_QUEUE_PREFIX: deployment }: DeploymentSettings) {
  const prefix = deployment === defaultDeployment ? '' : `${deployment}-`;
  const deliveryPrefix = `${prefix}batch-export-notification-`;
  return {
    schedule: (batchExportId: string): string => `${prefix}batch-export-${batchExportId}`,
    backfill: (backfillId: string): string => `${prefix}batch-export-backfill-${backfillId}`,
    /** One per interval of an export, so Temporal also runs only one at a time. */
    run: ({ batch_export_id, data_interval_start, data_interval_end }: RunInterval): string =>
      `${prefix}batch-export-run-${batch_export_id}-${compactTime(data_interval_start)}-${compactTime(data_interval_end)}`,
    /** Users choose the ids of queries. */
    query: ({ team_id, id }: { readonly team_id: number; readonly id: string }): string =>
      `${prefix}query-${team_id}-${id}`,
    destinationTest: (testId: string): string => `${prefix}batch-export-destination-test-${testId}`,
    verification: (verificationId: string): string => `${prefix}batch-export-verification-${verificationId}`,
    delivery: (deliveryId: string): string => `${deliveryPrefix}${deliveryId}`,
    /** The delivery id in the workflow id of a delivery; undefined for any other workflow. */
    deliveryIdOf: (workflowId: string): string | undefined => {
      const id = workflowId.slice(deliveryPrefix.length);
      return workflowId.startsWith(deliveryPrefix) && isId(id) ? id : undefined;
    },
    maintenance: (): string => `${prefix}batch-export-maintenance`,
  };
}

/** Formats `2026-11-01T10:00:00.000Z` as `20261101T100000Z`, as file keys do. */
const compactTime = (time: string): string => time.replace(/[-:]|\.\d+/g, '');
