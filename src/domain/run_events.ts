import type { RangeStep, RunInheritance, RunSpec } from './run_state.ts';
import type { RunMaintenanceEvent } from './maintenance_events.ts';
import type { CompletedFile, ExportedFile, PlannedPart, SortKey } from './exported_files.ts';

/** What happens to a run. */
export type RunEvent =
  | { type: 'RunCreated'; data: RunSpec & { inherited?: RunInheritance } }
  /** `cuts` divide a large interval into ranges that are exported side by side; none for one that stays whole. */
  | {
      type: 'RunCounted';
      data: { records_total_count: number; settled: boolean; split_keys: readonly SortKey[] };
    }
  | { type: 'RunExportStarted'; data: { range: number } }
  /** A later attempt takes the place of the one before, whose every further step is refused from here on. */
  | { type: 'RunAttemptStarted'; data: { range: number } }
  /** `late_rows`: the source had other rows after the last file than before, so all of them are exported again. */
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
  /** A later attempt goes on with the upload: only these parts are there, with so many rows and bytes. */
  | {
      type: 'RunUploadResumed';
      data: RangeStep & { key: string; part_numbers: readonly number[]; rows: number; bytes: number };
    }
  | { type: 'RunPartPlanned'; data: RangeStep & { key: string; part: PlannedPart } }
  | { type: 'RunFileCompleted'; data: RangeStep & { file: CompletedFile } }
  | { type: 'RunRangeFinished'; data: RangeStep }
  /** The rows that the format cannot hold go into a file of their own; recorded before it is written. */
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
