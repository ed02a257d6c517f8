// The worker registers every function exported here as a workflow. Export nothing else.
export * from './background_query.ts';
export * from './jobs.ts';
export * from './notification.ts';
export { batchExportRun } from './run.ts';
export { batchExportSchedule } from './schedule.ts';
export { batchExportBackfill } from './backfill.ts';
export { batchExportMaintenance } from './maintenance.ts';
export * from './webhook_test.ts';
