/** The workflows of jobs. All kinds take the same steps; the name says in the Temporal UI what is done. */
export {
  job as batchExportDestinationTest,
  job as batchExportDifference,
  job as batchExportDifferenceDecision,
  job as batchExportRoleCheck,
  job as batchExportTableCheck,
  job as batchExportTableDescription,
  job as batchExportTableHistory,
  job as batchExportTableRepair,
  job as batchExportVerification,
} from './job.ts';
