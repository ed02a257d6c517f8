import { defineSearchAttributeKey } from '@temporalio/common';

/**
 * Search attributes of workflows, for filters in the Temporal UI. Keyword attributes are scarce: a server with SQL
 * visibility allows ten per namespace. Only an execution can change its own attributes (Temporal 1.29 has no API for
 * it), so a terminated or timed-out execution keeps its last status: see `ExecutionStatus` or the run's row for those.
 */
export const searchAttributes = {
  project: defineSearchAttributeKey('ExportdProject', 'KEYWORD'),
  batchExport: defineSearchAttributeKey('ExportdBatchExport', 'KEYWORD'),
  /** The export's name; SQL visibility allows the 255 characters that a name can have. */
  name: defineSearchAttributeKey('ExportdName', 'KEYWORD'),
  model: defineSearchAttributeKey('ExportdModel', 'KEYWORD'),
  destination: defineSearchAttributeKey('ExportdDestination', 'KEYWORD'),
  intervalStart: defineSearchAttributeKey('ExportdIntervalStart', 'KEYWORD'),
  run: defineSearchAttributeKey('ExportdRun', 'KEYWORD'),
  backfill: defineSearchAttributeKey('ExportdBackfill', 'KEYWORD'),
  status: defineSearchAttributeKey('ExportdStatus', 'KEYWORD'),
};
