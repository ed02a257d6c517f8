// The worker registers every function exported here as a workflow. Export nothing else.
export { batchExportBackfill } from './backfill.ts';
export {
  backgroundQuery,
  batchExportDestinationTest,
  batchExportErasure,
  batchExportNotification,
  batchExportVerification,
} from './jobs.ts';
export { batchExportRun } from './run.ts';
export { batchExportSchedule } from './schedule.ts';
export { batchExportMaintenance } from './maintenance.ts';
