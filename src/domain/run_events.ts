/** The events of a run's stream. */
import type { UnsettledBarrier } from './barrier.ts';
import type { RunMaintenanceEvent } from './comparison.ts';
import type { ExportedFile, PlannedPart, RecordedFile } from './exported_files.ts';
import type { AdoptedManifest } from './adopted_manifest.ts';
import type { EarlierGenerations } from './earlier_generations.ts';
import type { MissingRows, ReplacementCheck } from './replacement_check.ts';
import type { SortKey } from './sort_key.ts';
import type { Fingerprint } from './fingerprint.ts';
import type { InheritedProgress, RangeStep, RunSpec, TargetCommit } from './run_state.ts';

export type RunEvent =
  | { type: 'RunCreated'; data: RunSpec & { inherited?: InheritedProgress } }
  /**
   * `fingerprint`: the rows of the source, or all events of the project where persons decide which are selected.
   * `split_keys` split a large interval into ranges that are exported in parallel; empty if it is not.
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
  | {
      type: 'RunReplacementChecked';
      /** `late_keys`: of the rows that the run adds. The state lacks them, since it is written with each step. */
      data: ReplacementCheck & { late_keys?: readonly SortKey[] };
    }
  /** `generation`: the interval's next generation, if it was reserved in the same step. */
  | { type: 'RunExportStarted'; data: { range: number; generation?: number } }
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
        /** The only part of a file that is written in one request. */
        part?: RecordedPart;
      };
    }
  /** A later attempt resumes the upload. Only these parts exist in S3; `rows` and `bytes` are their totals. */
  | {
      type: 'RunUploadResumed';
      data: RangeStep & { key: string; part_numbers: readonly number[]; rows: number; bytes: number };
    }
  | {
      type: 'RunPartPlanned';
      data: RangeStep & { key: string; part: RecordedPart };
    }
  /**
   * The fingerprint is null if it is that of the file's parts, and the totals of the run tell it (see `decideFile`).
   * `finishes_range`: the files contain every row of the range, as RunRangeFinished says.
   */
  | {
      type: 'RunFileCompleted';
      data: RangeStep & { file: RecordedFile; finishes_range?: true };
    }
  | { type: 'RunRangeFinished'; data: RangeStep }
  /** The file of rejected rows (those that the format cannot represent), recorded before it is written. */
  | { type: 'RunRejectedFilePlanned'; data: { generation: number; file: ExportedFile } }
  /** `fingerprint`: the source after the last row was read, as in RunCounted; null if it is that of what was exported. */
  | {
      type: 'RunExportFinished';
      data: { generation: number; source_rows: number; fingerprint: Fingerprint | null; encoder: string };
    }
  /** `raised_to`: the run writes above the manifest that it found. What it has exported stays. */
  | { type: 'RunManifestAdopted'; data: AdoptedManifest }
  /** `earlier_generations`: what the run leaves of them; absent if that is nothing. */
  | { type: 'RunPublishStarted'; data: { generation: number; earlier_generations?: EarlierGenerations } }
  /** Another attempt continues under the claim, whose manifest may be stored by now. */
  | { type: 'RunPublishResumed'; data: { generation: number } }
  /** The attempt that claimed publishing sent no manifest, so the run can be cancelled again. */
  | { type: 'RunPublishWithdrawn'; data: { generation: number } }
  /** The commit of the run's files to a target, before it is sent; another one if it cannot be that. */
  | { type: 'RunTargetPlanned'; data: RunTargetData }
  /** The commit is in the target. */
  | { type: 'RunTargetCommitted'; data: RunTargetData }
  /**
   * `expires_at`: when a lifecycle rule of the bucket deletes the manifest; null without a rule. `covers`: the generation
   * that is no longer needed; null if the run replaced none, or if its files stay.
   */
  | {
      type: 'RunCompleted';
      data: { manifest_key: string; expires_at: string | null; covers: number | null };
    }
  /** The run completed without publishing: bucket and source have the rows of the manifest of this run, which stays current. */
  | { type: 'RunUnchanged'; data: { manifest_run_id: string; generation: number } }
  /** `held`: the source lacks rows of the current manifest, which stays. */
  | { type: 'RunFailed'; data: { latest_error: string; held?: MissingRows } }
  /** `in_outage`: its destination did not respond in its time, so that its retry does not count. */
  | {
      type: 'RunFailedRetryable';
      data: {
        latest_error: string;
        retry_number: number;
        retry_delay_seconds: number | null;
        in_outage?: true;
      };
    }
  | {
      type: 'RunTimedOut';
      data: {
        latest_error: string;
        retry_number: number;
        retry_delay_seconds: number | null;
        in_outage?: true;
      };
    }
  | { type: 'RunTerminated'; data: { latest_error: string } }
  /** Publishing was claimed: the run is cancelled if its bucket has no manifest of it, and completes otherwise. */
  | { type: 'RunCancelRequested'; data: { reason: string } }
  | { type: 'RunCancelled'; data: { reason: string } }
  | { type: 'RunContinuedAsNew'; data: { next_run_id: string; cursor: string } }
  | RunMaintenanceEvent;

/** A part as it is recorded. Its fingerprint is null if it is that of RunCounted: a run of one part would repeat it. */
export type RecordedPart = Omit<PlannedPart, 'fingerprint'> & { readonly fingerprint: Fingerprint | null };

/** A commit to a target, of a run or of one that continues it. */
interface RunTargetData extends Pick<TargetCommit, 'commit'> {
  readonly generation: number;
  /** The name of the target. */
  readonly target: string;
}

/** The data of an event of this type. */
export type RunEventData<Type extends RunEvent['type']> = Extract<RunEvent, { type: Type }>['data'];
