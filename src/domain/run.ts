import { CommandRefused } from './errors.ts';
import type { Decider, Recorded } from './event.ts';
import type { Model } from './batch_export.ts';
import type { ExportedFile, OpenUpload, PlannedPart } from './upload.ts';

export type { ExportedFile, OpenUpload, PlannedPart, SortKey } from './upload.ts';

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
export const activeStatuses = ['Starting', 'Running'] as const satisfies readonly RunStatus[];

export const isActive = (status: RunStatus): boolean => status === 'Starting' || status === 'Running';

/** What a run is of; fixed by the event that opened it, so that an edit of the export never reaches a run in flight. */
export interface RunSubject {
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

export type RunEvent =
  | { type: 'RunStarted'; data: RunSubject & { inherited?: RunInheritance } }
  | { type: 'RunCounted'; data: { records_total_count: number; settled: boolean } }
  | { type: 'RunExportBegan'; data: Record<string, never> }
  /** A later attempt takes the place of the one before, whose every further step is refused from here on. */
  | { type: 'RunAttemptBegan'; data: Record<string, never> }
  | { type: 'RunGenerationReserved'; data: { generation: number } }
  | {
      type: 'RunUploadCreated';
      data: { generation: number; key: string; upload_id: string; mark?: string; encoder?: string };
    }
  /** A later attempt goes on with the upload: only these parts are there, with so many rows and bytes. */
  | {
      type: 'RunUploadResumed';
      data: { generation: number; key: string; part_numbers: readonly number[]; rows: number; bytes: number };
    }
  | { type: 'RunPartPlanned'; data: { generation: number; key: string; part: PlannedPart } }
  | { type: 'RunFileCompleted'; data: { generation: number; file: ExportedFile } }
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
  | { type: 'RunContinuedAsNew'; data: { next_run_id: string; cursor: string } };

/** How far the export of an interval has come, under one config. */
export type RunProgress = Pick<
  OpenedRun,
  'records_total_count' | 'settled' | 'generation' | 'attempt' | 'encoder' | 'upload' | 'files'
>;

/** What a run goes on with, and the run of its interval that came so far. */
export interface RunInheritance {
  readonly run_id: string;
  readonly progress: RunProgress;
}

/** Names the one attempt that may record steps. */
export type RunAttempt = Pick<OpenedRun, 'generation' | 'attempt'>;

export type RunState = { readonly status: 'Absent' } | OpenedRun;

export interface OpenedRun {
  readonly status: RunStatus;
  readonly subject: RunSubject;
  readonly records_total_count: number | null;
  /** False when the barrier gave up on an open transaction of the source. */
  readonly settled: boolean;
  /** The newest generation of the interval that this run reserved; 0 before the first. */
  readonly generation: number;
  /** How many export attempts have begun; together with the generation it names the one that may go on. */
  readonly attempt: number;
  /** Which encoder makes the files of the generation; null before its first upload. */
  readonly encoder: string | null;
  readonly upload: OpenUpload | null;
  /** Finished files of the current generation. */
  readonly files: readonly ExportedFile[];
  /** Set once every row of the interval is in `files`. */
  readonly finished: { readonly source_rows: number; readonly encoder: string } | null;
  /** When publishing was claimed (ISO 8601), which closes the way to Cancelled; null before. */
  readonly publish_started_at: string | null;
}

/** Folds a run's stream. */
export const runDecider: Decider<RunState, RunEvent> = {
  streamType: 'run',
  initialState: { status: 'Absent' },
  evolve,
};

function evolve(state: RunState, event: Recorded<RunEvent>): RunState {
  if (event.type === 'RunStarted') return started(event.data);
  if (state.status === 'Absent') return state;
  switch (event.type) {
    case 'RunCounted':
      return {
        ...state,
        records_total_count: event.data.records_total_count,
        settled: event.data.settled,
      };
    case 'RunExportBegan':
      return { ...state, status: 'Running', attempt: state.attempt + 1 };
    case 'RunAttemptBegan':
      return { ...state, attempt: state.attempt + 1 };
    case 'RunGenerationReserved':
      return {
        ...state,
        generation: event.data.generation,
        encoder: null,
        upload: null,
        files: [],
        finished: null,
      };
    case 'RunUploadCreated':
      return {
        ...state,
        encoder: event.data.encoder ?? null,
        upload: {
          key: event.data.key,
          upload_id: event.data.upload_id,
          mark: event.data.mark ?? null,
          parts: [],
          highest_part_number: 0,
        },
      };
    case 'RunUploadResumed':
      return state.upload?.key === event.data.key
        ? {
            ...state,
            upload: {
              ...state.upload,
              parts: state.upload.parts.filter(({ part_number }) =>
                event.data.part_numbers.includes(part_number),
              ),
            },
          }
        : state;
    case 'RunPartPlanned':
      return state.upload?.key === event.data.key
        ? {
            ...state,
            upload: {
              ...state.upload,
              parts: [...state.upload.parts, event.data.part],
              highest_part_number: Math.max(state.upload.highest_part_number, event.data.part.part_number),
            },
          }
        : state;
    case 'RunFileCompleted':
      return { ...state, upload: null, files: [...state.files, event.data.file] };
    case 'RunExportFinished':
      return {
        ...state,
        finished: { source_rows: event.data.source_rows, encoder: event.data.encoder },
      };
    case 'RunPublishStarted':
      return { ...state, publish_started_at: event.recorded_at };
    case 'RunCompleted':
      return { ...state, status: 'Completed' };
    case 'RunFailed':
      return { ...state, status: 'Failed' };
    case 'RunFailedRetryable':
      return { ...state, status: 'FailedRetryable' };
    case 'RunTimedOut':
      return { ...state, status: 'TimedOut' };
    case 'RunTerminated':
      return { ...state, status: 'Terminated' };
    case 'RunCancelled':
      return { ...state, status: 'Cancelled' };
    case 'RunContinuedAsNew':
      return { ...state, status: 'ContinuedAsNew' };
  }
}

const started = ({ inherited, ...subject }: RunSubject & { inherited?: RunInheritance }): OpenedRun => ({
  status: 'Starting',
  subject,
  records_total_count: null,
  settled: true,
  generation: 0,
  attempt: 0,
  encoder: null,
  upload: null,
  files: [],
  ...inherited?.progress,
  finished: null,
  publish_started_at: null,
});

/** A step of a run that has already reached a terminal status: whoever takes it must stop. */
export class RunEnded extends Error {
  override readonly name = 'RunEnded';
  readonly status: RunStatus | 'Absent';
  constructor(status: RunStatus | 'Absent') {
    super(`The run is ${status}; nothing more is done for it.`);
    this.status = status;
  }
}

/** A step taken for a generation that another attempt has replaced. */
export class GenerationSuperseded extends Error {
  override readonly name = 'GenerationSuperseded';
}

/** The run while it may still be worked on; throws RunEnded when it may not. */
export function requireActive(state: RunState): OpenedRun {
  if (state.status === 'Absent' || !isActive(state.status)) throw new RunEnded(state.status);
  return state;
}

/** The active run, provided that `generation` is still its newest; throws RunEnded or GenerationSuperseded. */
export function requireGeneration(state: RunState, generation: number): OpenedRun {
  const run = requireActive(state);
  if (run.generation !== generation)
    throw new GenerationSuperseded(`Generation ${generation} was replaced by ${run.generation}.`);
  return run;
}

/** The active run, provided that no other attempt has begun since; throws RunEnded or GenerationSuperseded. */
export function requireAttempt(state: RunState, { generation, attempt }: RunAttempt): OpenedRun {
  const run = requireGeneration(state, generation);
  if (run.attempt !== attempt)
    throw new GenerationSuperseded('Another attempt of the run has taken the place of this one.');
  return run;
}

/**
 * Cancels a run. Refused once publishing was claimed, since the manifest may already be visible; a run in a terminal
 * status is refused too.
 */
export function decideCancel(state: RunState, reason: string): RunEvent[] {
  if (state.status === 'Absent') throw new CommandRefused('not_found', 'Not found.');
  if (!isActive(state.status))
    throw new CommandRefused('conflict', `Cannot cancel a run that is in '${state.status}' status.`);
  if (state.publish_started_at !== null)
    throw new CommandRefused(
      'conflict',
      'The run is publishing its manifest and can no longer be cancelled.',
    );
  return [{ type: 'RunCancelled', data: { reason } }];
}

/** Claims publishing of a finished generation; a repeated claim is no event. */
export function decidePublish(state: RunState, generation: number): RunEvent[] {
  const run = requireGeneration(state, generation);
  if (!run.finished) throw new RangeError('A generation is published only after its last row was exported.');
  return run.publish_started_at === null ? [{ type: 'RunPublishStarted', data: { generation } }] : [];
}

/** How a run that a retry may cure ends, and when the next one follows. */
export interface RetryPolicy {
  readonly initialSeconds: number;
  readonly maximumSeconds: number;
  readonly maximumRetries: number;
}

/** Seconds until the automatic retry after the run with this many retries behind it; null when there is none left. */
export function retryDelaySeconds(retryNumber: number, policy: RetryPolicy): number | null {
  if (retryNumber >= policy.maximumRetries) return null;
  return Math.min(policy.initialSeconds * 2 ** retryNumber, policy.maximumSeconds);
}
