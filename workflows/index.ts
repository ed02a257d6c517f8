// Every function exported here is a workflow that the worker registers; nothing else may be exported.
export { batchExportBackfill } from './backfill.ts';
export { batchExportDestinationTest } from './destination_test.ts';
export { batchExportNotification } from './notification.ts';
export { query } from './query.ts';
export { batchExportRun } from './run.ts';
export { batchExportSchedule } from './schedule.ts';
export { batchExportUpkeep } from './upkeep.ts';
