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
