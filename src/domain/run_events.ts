import type { RangeStep, InheritedProgress, RunSpec } from './run_state.ts';
import type { RunMaintenanceEvent } from './maintenance_events.ts';
import type { CompletedFile, ExportedFile, PlannedPart, SortKey } from './exported_files.ts';

/** The events of a run. */
export type RunEvent =
  | { type: 'RunCreated'; data: RunSpec & { inherited?: InheritedProgress } }
  /** `split_keys` split a large interval into ranges that are exported in parallel; empty if it is not split. */
  | {
      type: 'RunCounted';
      data: { records_total_count: number; settled: boolean; split_keys: readonly SortKey[] };
    }
  | { type: 'RunExportStarted'; data: { range: number } }
  /** A new attempt replaces the previous one, whose further steps are rejected from here on. */
  | { type: 'RunAttemptStarted'; data: { range: number } }
  /** `late_rows`: rows arrived in the source during the export, so everything is exported again. */
  | { type: 'RunGenerationReserved'; data: { generation: number; late_rows?: boolean } }
  | {
      type: 'RunUploadCreated';
      data: RangeStep & {
        file: number;
        key: string;
        upload_id: string;
        upload_token: string;
        encoder: string;
      };
    }
  /** A later attempt resumes the upload. Only these parts exist in S3; `rows` and `bytes` are their totals. */
  | {
      type: 'RunUploadResumed';
      data: RangeStep & { key: string; part_numbers: readonly number[]; rows: number; bytes: number };
    }
  | { type: 'RunPartPlanned'; data: RangeStep & { key: string; part: PlannedPart } }
  | { type: 'RunFileCompleted'; data: RangeStep & { file: CompletedFile } }
  | { type: 'RunRangeFinished'; data: RangeStep }
  /** The file of rejected rows (those that the format cannot represent), recorded before it is written. */
  | { type: 'RunRejectedFilePlanned'; data: { generation: number; file: ExportedFile } }
  | { type: 'RunExportFinished'; data: { generation: number; source_rows: number; encoder: string } }
  | { type: 'RunPublishStarted'; data: { generation: number } }
  | { type: 'RunCompleted'; data: { manifest_key: string } }
  | { type: 'RunFailed'; data: { latest_error: string } }
  | {
      type: 'RunFailedRetryable';
      data: { latest_error: string; retry_number: number; retry_delay_seconds: number | null };
    }
  | {
      type: 'RunTimedOut';
      data: { latest_error: string; retry_number: number; retry_delay_seconds: number | null };
    }
  | { type: 'RunTerminated'; data: { latest_error: string } }
  | { type: 'RunCancelled'; data: { reason: string } }
  | { type: 'RunContinuedAsNew'; data: { next_run_id: string; cursor: string } }
  | RunMaintenanceEvent;
