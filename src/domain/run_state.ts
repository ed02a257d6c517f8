import type { OpenBarrier, UnsettledBarrier } from './barrier.ts';
import type { Model } from './batch_export.ts';
import { addFiles, type ExportedFile, type ExportRange, type FileTotals } from './exported_files.ts';
import type { AdoptedManifest } from './adopted_manifest.ts';
import { type EarlierGenerations, nothingEarlier } from './earlier_generations.ts';
import type { ReplacementCheck } from './replacement_check.ts';
import { addFingerprints, emptyFingerprint, type Fingerprint, fingerprintHashOf } from './fingerprint.ts';

/** The recorded failures of a run's attempts by type of error: how many, and when the latest was recorded (ISO 8601). */
type FailedAttempts = Readonly<Record<string, { readonly recorded: number; readonly recorded_at: string }>>;

/** Failures of one type are recorded this far apart, in milliseconds. A run may fail every second for hours. */
const recordIntervalMs = 5 * 60_000;

/** Whether a failure of this type is to be recorded. `isShown`: the run still shows its latest failure. */
export function isFailureDue(
  failures: FailedAttempts,
  type: string,
  { isShown, now }: { readonly isShown: boolean; readonly now: Date },
): boolean {
  const latest = failures[type];
  return (
    latest === undefined ||
    !isShown ||
    now.getTime() - new Date(latest.recorded_at).getTime() >= recordIntervalMs
  );
}

export const withFailure = (failures: FailedAttempts, type: string, recorded_at: string): FailedAttempts => ({
  ...failures,
  [type]: { recorded: (failures[type]?.recorded ?? 0) + 1, recorded_at },
});

/** Every status of a run with its label, as in the API document. */
export const runStatusLabels = {
  Cancelled: 'Cancelled',
  Completed: 'Completed',
  ContinuedAsNew: 'Continued As New',
  Failed: 'Failed',
  FailedRetryable: 'Failed Retryable',
  Terminated: 'Terminated',
  TimedOut: 'Timedout',
  Running: 'Running',
  Starting: 'Starting',
} as const;
export type RunStatus = keyof typeof runStatusLabels;

/** The statuses of a run that has not ended. */
export const activeRunStatuses = ['Starting', 'Running'] as const satisfies readonly RunStatus[];

/** Whether a run with this status has not ended. */
export const isActiveStatus = (status: RunStatus): boolean => status === 'Starting' || status === 'Running';

/** Why an interval is exported. */
export type RunPurpose =
  /** It is one of the schedule. */
  | { readonly kind: 'interval' }
  /** A person asked for it. `keeps_unchanged`: nothing is published if the bucket has the rows of the source already. */
  | { readonly kind: 'backfill'; readonly backfill_id: string; readonly keeps_unchanged?: true }
  /**
   * exportd itself exports it again, in the repair of the export, because rows arrived late. `definition`: whether model and
   * config are those of the manifest that it replaces, or the export's current ones.
   */
  | {
      readonly kind: 'repair';
      readonly backfill_id: string;
      readonly definition: 'kept' | 'current';
    };

/** The backfill or repair that created a run; null for a run of the schedule. */
export const backfillOf = ({ purpose }: Pick<RunSpec, 'purpose'>): string | null =>
  purpose.kind === 'interval' ? null : purpose.backfill_id;

/** The specification of a run, fixed at its creation: editing the export does not affect a run in progress. */
export interface RunSpec {
  readonly batch_export_id: string;
  readonly team_id: number;
  readonly model: Model;
  readonly config_version: number;
  readonly data_interval_start: string;
  readonly data_interval_end: string;
  readonly purpose: RunPurpose;
  /** The number of automatic retries before it, itself included; 0 for a run that is not one. */
  readonly retry_number: number;
  /** Whether its request allows it to publish fewer rows than the manifest that it replaces. */
  readonly allow_shrink: boolean;
  /** The run that this one continues as new, or null. */
  readonly continues_run_id: string | null;
}

/** What a run exports, and where to. */
export type RunDefinition = Pick<RunSpec, 'model' | 'config_version'>;

/** Identifies the range of a step; `range` is its index, from 0. */
export interface RangeStep {
  readonly generation: number;
  readonly range: number;
}

/** The commit of a run's files to a target besides its manifest. Only the target knows what it says. */
export interface TargetCommit {
  readonly commit: Readonly<Record<string, string | number>>;
  /** Whether it is known to be written, and not only planned. */
  readonly isWritten: boolean;
}

/** What files and open uploads have. */
interface WrittenTotals {
  readonly rows: number;
  readonly bytes: number;
}

/** The progress of exporting an interval under one config. A run that continues or retries another one inherits it. */
export interface RunProgress {
  readonly records_total_count: number | null;
  /** The rows of the source when the run started; null before they were counted. */
  readonly source_fingerprint: Fingerprint | null;
  /**
   * The rows of the source before the first row of the generation's files was read; null if they are
   * `source_fingerprint`. Unlike that, an automatic retry that resumes the files of a failed run inherits it.
   */
  readonly read_since: Fingerprint | null;
  /** False if the barrier timed out waiting for an open transaction of the source. */
  readonly settled: boolean;
  /**
   * What still blocks the barrier of a run that did not settle, or that it has opened since. Null if the run settled, or
   * once its interval was compared with the source after the barrier had opened.
   */
  readonly unsettled_barrier: UnsettledBarrier | OpenBarrier | null;
  /** How the source compared with the manifest that this run replaces; null before that, and if there is none. */
  readonly replacement: ReplacementCheck | null;
  /** The newest generation that this run reserved for the interval; 0 before the first. */
  readonly generation: number;
  /** How many of the run's generations were reserved because of late rows. */
  readonly late_generations: number;
  /**
   * The most rows and bytes that its files and open uploads had; those of its files once the export has finished. Parts that were
   * lost and are sent again are no progress.
   */
  readonly most_written: WrittenTotals;
  /** Identifies the encoder of the generation's files; null before its first upload. */
  readonly encoder: string | null;
  /** The key ranges of the interval, in key order; one unless the interval was split. */
  readonly ranges: readonly ExportRange[];
  /** The file of the generation's rejected rows, possibly not written yet; null if there are none. */
  readonly rejected_file: ExportedFile | null;
  /** Failed runs that claimed publishing of these files before: a manifest of one of them may be stored. */
  readonly claimed_by: readonly string[];
  /** The commits of the run's files to its targets, by name; absent before one is planned, and without any. */
  readonly target_commits?: Readonly<Record<string, TargetCommit>> | undefined;
  /** Why the run is to be cancelled once its bucket shows that nothing was published; null if it is not. */
  readonly cancel_requested: string | null;
}

/** The progress that a run resumes from, and the run that made it. */
export interface InheritedProgress {
  readonly run_id: string;
  readonly progress: RunProgress;
}

/** Identifies the only attempt that may record steps of a range: the fencing token of every step. */
export interface RangeAttempt extends RangeStep {
  readonly attempt: number;
}

export type RunState = { readonly status: 'Absent' } | ExistingRun;

/** The export of every row of an interval. */
interface FinishedExport {
  readonly source_rows: number;
  /** The rows of the source after the last one was read; null if they are those of the files and the rejected ones. */
  readonly fingerprint: Fingerprint | null;
  readonly encoder: string;
}

/** Where the newest generation of a run is. A run that has ended keeps its last phase. */
export type RunPhase =
  /** Its rows are counted, moved to files and compared with the source. */
  | { readonly name: 'exporting' }
  /** The files have every row of the interval. */
  | { readonly name: 'exported'; readonly finished: FinishedExport }
  /** Publishing is claimed, so that its manifest may be stored: a cancellation has to ask the bucket. */
  | {
      readonly name: 'publishing';
      readonly finished: FinishedExport;
      /** ISO 8601. */
      readonly claimed_at: string;
      /** Whether an attempt continued under the claim of another, which may have sent its manifest. */
      readonly is_resumed: boolean;
      /** What the run leaves of earlier generations, decided by the claim; absent if that is nothing. */
      readonly earlier_generations?: EarlierGenerations;
    };

/** The finished export of a run; null while rows may be missing in its files. */
export const finishedOf = ({ phase }: Pick<ExistingRun, 'phase'>): FinishedExport | null =>
  phase.name === 'exporting' ? null : phase.finished;

/** What a run leaves of earlier generations: nothing before publishing was claimed. */
export const earlierGenerationsOf = ({ phase }: Pick<ExistingRun, 'phase'>): EarlierGenerations =>
  (phase.name === 'publishing' ? phase.earlier_generations : undefined) ?? nothingEarlier;

export interface ExistingRun extends RunProgress {
  readonly status: RunStatus;
  readonly spec: RunSpec;
  /** ISO 8601. */
  readonly created_at: string;
  readonly phase: RunPhase;
  /** The newest manifest in the bucket that the run found and the journal did not know; null if there was none. */
  readonly adopted: (Omit<AdoptedManifest, 'files'> & { readonly files: FileTotals }) | null;
  /** The errors that its steps are retried after, by type. */
  readonly failed_attempts: FailedAttempts;
  /** How many attempts claimed publishing or continued under a claim: the last one holds it. */
  readonly publish_claims: number;
}

/** Whether a manifest of the run's files may be stored, so that the run cannot simply be cancelled. */
export const mayBePublished = ({ phase, claimed_by }: Pick<ExistingRun, 'phase' | 'claimed_by'>): boolean =>
  phase.name === 'publishing' || claimed_by.length > 0;

/** The rows of the run's files, and the rejected ones. */
export const exportedFingerprint = (
  run: Pick<ExistingRun, 'spec' | 'ranges' | 'rejected_file'>,
): Fingerprint => {
  const { model, data_interval_start: start, data_interval_end: end } = run.spec;
  const [first, ...more] = [filesOf(run).fingerprint, run.rejected_file?.fingerprint].flatMap(
    (rows) => rows ?? [],
  );
  return first ? addFingerprints(first, ...more) : emptyFingerprint({ start, end }, fingerprintHashOf(model));
};

/** The rows of the source after the last one was read. @throws RangeError when the run has not read it */
export function sourceAfter(
  run: Pick<ExistingRun, 'spec' | 'ranges' | 'rejected_file' | 'phase'>,
): Fingerprint {
  const finished = finishedOf(run);
  if (!finished) throw new RangeError('The run has not read its last row.');
  return finished.fingerprint ?? exportedFingerprint(run);
}

/** The rows of the source before the first row of the generation's files was read; null before that. */
export const sourceBefore = (
  run: Pick<RunProgress, 'read_since' | 'source_fingerprint'>,
): Fingerprint | null => run.read_since ?? run.source_fingerprint;

/** The completed files of the run's generation, added up. */
export const filesOf = ({ ranges }: Pick<ExistingRun, 'ranges'>): FileTotals =>
  addFiles(...ranges.map(({ files }) => files));
