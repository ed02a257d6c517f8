/** Names under which the workflows are registered, as the Temporal UI shows them. */
export const workflowTypes = {
  schedule: 'batchExportSchedule',
  run: 'batchExportRun',
  backfill: 'batchExportBackfill',
  maintenance: 'batchExportMaintenance',
  backgroundQuery: 'backgroundQuery',
} as const;

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
 * What every workflow id of a deployment starts with. Ids are unique within a namespace, so it is the task queue prefix, unless
 * that is the default.
 */
export const workflowIdPrefix = ({ EXPORTD_TASK_QUEUE_PREFIX: deployment }: DeploymentSettings): string =>
  deployment === defaultDeployment ? '' : `${deployment}-`;

/** The workflow ids of a deployment. */
export function workflowIds(settings: DeploymentSettings) {
  const prefix = workflowIdPrefix(settings);
  return {
    schedule: (batchExportId: string): string => `${prefix}batch-export-${batchExportId}`,
    backfill: (backfillId: string): string => `${prefix}batch-export-backfill-${backfillId}`,
    /** One per interval of an export, so Temporal also runs only one at a time. */
    run: ({ batch_export_id, data_interval_start, data_interval_end }: RunInterval): string =>
      `${prefix}batch-export-run-${batch_export_id}-${compactTime(data_interval_start)}-${compactTime(data_interval_end)}`,
    /** Users choose the ids of queries. */
    query: ({ team_id, id }: { readonly team_id: number; readonly id: string }): string =>
      `${prefix}query-${team_id}-${id}`,
    /** Begins with the name of its workflow: `batch-export-verification-<id>`. */
    job: (workflowType: string, jobId: string): string =>
      `${prefix}${workflowType.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}-${jobId}`,
    maintenance: (): string => `${prefix}batch-export-maintenance`,
  };
}

/** Formats `2026-11-01T10:00:00.000Z` as `20261101T100000Z`, as file keys do. */
const compactTime = (time: string): string => time.replace(/[-:]|\.\d+/g, '');
