import { defineSearchAttributeKey } from '@temporalio/common';

/**
 * What workflows are found by in the Temporal UI. Keywords are scarce (ten per namespace on a small server). Only an
 * execution itself changes its attributes (Temporal 1.29 has no call that does), so the status of one that was terminated
 * or timed out stays what it was: `ExecutionStatus` tells those, and the run's row.
 */
export const searchAttributes = {
  project: defineSearchAttributeKey('ExportdProject', 'KEYWORD'),
  batchExport: defineSearchAttributeKey('ExportdBatchExport', 'KEYWORD'),
  model: defineSearchAttributeKey('ExportdModel', 'KEYWORD'),
  destination: defineSearchAttributeKey('ExportdDestination', 'KEYWORD'),
  intervalStart: defineSearchAttributeKey('ExportdIntervalStart', 'KEYWORD'),
  run: defineSearchAttributeKey('ExportdRun', 'KEYWORD'),
  backfill: defineSearchAttributeKey('ExportdBackfill', 'KEYWORD'),
  status: defineSearchAttributeKey('ExportdStatus', 'KEYWORD'),
};
