import type { Model } from './batch_export.ts';
import type { CompletedFile, ExportedFile, ExportRange } from './exported_files.ts';

/** Every status of a run with the label people see; exactly those of the interface. */
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

/** The statuses that a run can still leave. */
export const activeRunStatuses = ['Starting', 'Running'] as const satisfies readonly RunStatus[];

/** Whether a run can still leave this status. */
export const isActiveStatus = (status: RunStatus): boolean => status === 'Starting' || status === 'Running';

/** What a run is of; fixed by the event that opened it, so that an edit of the export never reaches a run in flight. */
export interface RunSpec {
  readonly batch_export_id: string;
  readonly team_id: number;
  readonly model: Model;
  readonly config_version: number;
  readonly data_interval_start: string;
  readonly data_interval_end: string;
  /** The backfill that opened it, or null for a scheduled run. */
  readonly backfill_id: string | null;
  /** How many automatic retries led to it: 0 for a run that no failure caused. */
  readonly retry_number: number;
  /** The run that this one continues (continue-as-new), or null. */
  readonly continues_run_id: string | null;
}

/** Steps of one range's export name the range by its position, from 0. */
export interface RangeStep {
  readonly generation: number;
  readonly range: number;
}

/** How far the export of an interval has come, under one config. */
export type RunProgress = Pick<
  ExistingRun,
  | 'records_total_count'
  | 'settled'
  | 'generation'
  | 'late_generations'
  | 'encoder'
  | 'ranges'
  | 'rejected_file'
>;

/** What a run goes on with, and the run of its interval that came so far. */
export interface RunInheritance {
  readonly run_id: string;
  readonly progress: RunProgress;
}

/** Names the one attempt that may record steps of a range. */
export interface RangeAttempt extends RangeStep {
  readonly attempt: number;
}

export type RunState = { readonly status: 'Absent' } | ExistingRun;

export interface ExistingRun {
  readonly status: RunStatus;
  readonly spec: RunSpec;
  readonly records_total_count: number | null;
  /** False when the barrier gave up on an open transaction of the source. */
  readonly settled: boolean;
  /** The newest generation of the interval that this run reserved; 0 before the first. */
  readonly generation: number;
  /** How many of the run's generations were reserved because rows had arrived late. */
  readonly late_generations: number;
  /** Which encoder makes the files of the generation; null before its first upload. */
  readonly encoder: string | null;
  /** The stretches that the interval is exported in, in key order; one unless it was cut. */
  readonly ranges: readonly ExportRange[];
  /** The file of the generation's rejected rows, which may still have to be written; null while it has none. */
  readonly rejected_file: ExportedFile | null;
  /** Set once every row of the interval is in the files of its ranges. */
  readonly finished: { readonly source_rows: number; readonly encoder: string } | null;
  /** When publishing was claimed (ISO 8601), which closes the way to Cancelled; null before. */
  readonly publish_started_at: string | null;
}

/** All finished files of the run's generation, in key order. */
export const filesOf = ({ ranges }: Pick<ExistingRun, 'ranges'>): readonly CompletedFile[] =>
  ranges.flatMap(({ files }) => files);
