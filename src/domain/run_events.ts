import type { UnsettledBarrier } from './barrier.ts';
import type { AdoptedManifest, EarlierGenerations } from './earlier_generations.ts';
import type { Fingerprint } from './fingerprint.ts';
import type { RangeStep, InheritedProgress, RunSpec } from './run_state.ts';
import type { RunMaintenanceEvent } from './maintenance_events.ts';
import type { MissingRows, ReplacementCheck } from './replacement.ts';
import type { CompletedFile, ExportedFile, PlannedPart, SortKey } from './exported_files.ts';

/** The events of a run. */
export type RunEvent =
  | { type: 'RunCreated'; data: RunSpec & { inherited?: InheritedProgress } }
  /**
   * `fingerprint`: the rows of the source, or all events of the project where persons decide which are selected.
   * `split_keys` split a large interval into ranges that are exported in parallel; empty if it is not split.
   */
  | {
      type: 'RunCounted';
      data: {
        records_total_count: number;
        fingerprint: Fingerprint;
        settled: boolean;
        /** What still blocked the barrier when the wait for it timed out. */
        barrier?: UnsettledBarrier;
        split_keys: readonly SortKey[];
      };
    }
  /** The source was compared with the manifest that the run replaces. A run that replaces none has no such event. */
  | { type: 'RunReplacementChecked'; data: ReplacementCheck }
  | { type: 'RunExportStarted'; data: { range: number } }
  /**
   * A step failed again and is retried until `retried_until` (ISO 8601; null if unlimited). `latest_error` says so. Only
   * the first failure of a type is recorded, and one every few minutes.
   */
  | {
      type: 'RunAttemptFailed';
      data: { error_type: string; latest_error: string; retried_until: string | null };
    }
  /** A new attempt replaces the previous one, whose further steps are rejected from here on. */
  | { type: 'RunAttemptStarted'; data: { range: number } }
  /**
   * `late_rows`: rows arrived in the source during the export, so everything is exported again; `fingerprint` is the
   * source with them.
   */
  | {
      type: 'RunGenerationReserved';
      data: { generation: number; late_rows?: boolean; fingerprint?: Fingerprint };
    }
  /**
   * Another object has the key of a file, which is written under the next generation or file number. `range` and `file`
   * are null for the file of rejected rows.
   */
  | {
      type: 'RunKeyTaken';
      data: { generation: number; key: string } & (
        | { range: number; file: number }
        | { range: null; file: null }
      );
    }
  /** A file was started. `upload_id` is null if its only part is written in one request; `part_bytes`: see OpenUpload. */
  | {
      type: 'RunUploadCreated';
      data: RangeStep & {
        file: number;
        key: string;
        upload_id: string | null;
        upload_token: string;
        part_bytes: number | null;
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
  /** `fingerprint`: the source after the last row was read, as in RunCounted. */
  | {
      type: 'RunExportFinished';
      data: { generation: number; source_rows: number; fingerprint: Fingerprint; encoder: string };
    }
  /** `raised_to`: the run writes above the manifest that it found. What it has exported stays. */
  | { type: 'RunManifestAdopted'; data: AdoptedManifest }
  | { type: 'RunPublishStarted'; data: { generation: number; earlier_generations: EarlierGenerations } }
  /** Another attempt continues under the claim, whose manifest may be stored by now. */
  | { type: 'RunPublishResumed'; data: { generation: number } }
  /** The attempt that claimed publishing sent no manifest, so the run can be cancelled again. */
  | { type: 'RunPublishWithdrawn'; data: { generation: number } }
  /**
   * `expires_at`: when a lifecycle rule of the bucket deletes the manifest; null without a rule. `covers`: the generation
   * that is no longer needed; null if the run replaced none, or if its files stay.
   */
  | {
      type: 'RunCompleted';
      data: { manifest_key: string; expires_at: string | null; covers: number | null };
    }
  /** `held`: the source lacks rows of the current manifest, which stays. */
  | { type: 'RunFailed'; data: { latest_error: string; held?: MissingRows } }
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
