// The worker registers every function exported here as a workflow. Export nothing else.
export { batchExportBackfill } from './backfill.ts';
export { batchExportErasure } from './erasure.ts';
export { batchExportDestinationTest } from './destination_test.ts';
export { batchExportNotification } from './notification.ts';
export { backgroundQuery } from './background_query.ts';
export { batchExportRun } from './run.ts';
export { batchExportVerification } from './verification.ts';
export { batchExportSchedule } from './schedule.ts';
export { batchExportMaintenance } from './maintenance.ts';
