import { adoptedFiles, nothingEarlier } from './earlier_generations.ts';
import type { Recorded } from './event.ts';
import { withFailure } from './failed_attempts.ts';
import type { RunEvent } from './run_events.ts';
import type { ExistingRun, InheritedProgress, RunState, RunSpec } from './run_state.ts';
import {
  addFiles,
  noFiles,
  totalsOf,
  type ExportRange,
  type OpenUpload,
  type SortKey,
} from './exported_files.ts';

/** Folds one event into a run's state. */
export function evolve(state: RunState, event: Recorded<RunEvent>): RunState {
  if (event.type === 'RunCreated') return createdState(event.data, event.recorded_at);
  if (state.status === 'Absent') return state;
  switch (event.type) {
    case 'RunCounted': {
      const { records_total_count, fingerprint, settled, barrier = null, split_keys } = event.data;
      return {
        ...state,
        records_total_count,
        source_fingerprint: fingerprint,
        read_since: state.read_since ?? fingerprint,
        settled,
        unsettled_barrier: barrier,
        ranges: split_keys.length === 0 ? state.ranges : rangesBetween(split_keys),
      };
    }
    case 'RunReplacementChecked':
      return { ...state, replacement: event.data };
    case 'RunExportStarted':
      return { ...withNextAttempt(state, event.data.range), status: 'Running' };
    case 'RunAttemptFailed':
      return {
        ...state,
        failed_attempts: withFailure(state.failed_attempts, event.data.error_type, event.recorded_at),
      };
    case 'RunAttemptStarted':
      return withNextAttempt(state, event.data.range);
    case 'RunGenerationReserved':
      return {
        ...state,
        generation: event.data.generation,
        read_since: event.data.fingerprint ?? state.source_fingerprint,
        late_generations: state.late_generations + (event.data.late_rows === true ? 1 : 0),
        encoder: null,
        ranges: state.ranges.map(({ after, until, attempt }) => ({ ...openRange(after, until), attempt })),
        rejected_file: null,
        finished: null,
      };
    case 'RunKeyTaken': {
      const { range, file } = event.data;
      return range === null ? state : withRange(state, range, () => ({ next_file: file + 1 }));
    }
    case 'RunUploadCreated': {
      const { range, file, key, upload_id, upload_token, part_bytes, encoder } = event.data;
      const upload = { key, upload_id, upload_token, part_bytes, parts: [], highest_part_number: 0 };
      return { ...withRange(state, range, () => ({ upload, next_file: file + 1 })), encoder };
    }
    case 'RunUploadResumed':
      return withUpload(state, event.data, (upload) => ({
        parts: upload.parts.filter(({ part_number }) => event.data.part_numbers.includes(part_number)),
      }));
    case 'RunPartPlanned':
      return withUpload(state, event.data, (upload) => ({
        parts: [...upload.parts, event.data.part],
        highest_part_number: Math.max(upload.highest_part_number, event.data.part.part_number),
      }));
    case 'RunFileCompleted':
      return withRange(state, event.data.range, ({ files }) => ({
        upload: null,
        files: addFiles(files, totalsOf(event.data.file)),
      }));
    case 'RunRangeFinished':
      return withRange(state, event.data.range, () => ({ upload: null, finished: true }));
    case 'RunRejectedFilePlanned':
      return { ...state, rejected_file: event.data.file };
    case 'RunExportFinished':
      return {
        ...state,
        finished: {
          source_rows: event.data.source_rows,
          fingerprint: event.data.fingerprint,
          encoder: event.data.encoder,
        },
      };
    case 'RunManifestAdopted':
      return {
        ...state,
        generation: event.data.raised_to,
        adopted: { ...event.data, files: addFiles(...adoptedFiles(event.data).map(totalsOf)) },
        replacement: null,
        publish_started_at: null,
      };
    case 'RunPublishStarted':
      return {
        ...state,
        earlier_generations: event.data.earlier_generations,
        publish_started_at: event.recorded_at,
        publish_claims: state.publish_claims + 1,
        publish_resumed: false,
      };
    case 'RunPublishResumed':
      return { ...state, publish_claims: state.publish_claims + 1, publish_resumed: true };
    case 'RunPublishWithdrawn':
      return { ...state, earlier_generations: nothingEarlier, publish_started_at: null };
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
    case 'RunBarrierAdvanced':
      return { ...state, unsettled_barrier: event.data.barrier };
    case 'RunSettled':
      return { ...state, unsettled_barrier: null };
    case 'RunObjectDeleted':
    case 'RunObjectDeletionFailed':
    case 'IntervalCompared':
    case 'RunRetryCancelled':
      return state;
  }
}

const createdState = (
  { inherited, ...spec }: RunSpec & { inherited?: InheritedProgress },
  created_at: string,
): ExistingRun => ({
  status: 'Starting',
  spec,
  created_at,
  records_total_count: null,
  source_fingerprint: null,
  read_since: null,
  settled: true,
  unsettled_barrier: null,
  replacement: null,
  generation: 0,
  late_generations: 0,
  encoder: null,
  ranges: [openRange(null, null)],
  rejected_file: null,
  ...inherited?.progress,
  finished: null,
  adopted: null,
  earlier_generations: nothingEarlier,
  failed_attempts: {},
  publish_started_at: null,
  publish_claims: 0,
  publish_resumed: false,
});

const openRange = (after: SortKey | null, until: SortKey | null): ExportRange => ({
  after,
  until,
  attempt: 0,
  upload: null,
  files: noFiles,
  next_file: 0,
  finished: false,
});

const rangesBetween = (split_keys: readonly SortKey[]): readonly ExportRange[] =>
  [...split_keys, null].map((until, position) => openRange(split_keys[position - 1] ?? null, until));

const withRange = (
  state: ExistingRun,
  position: number,
  change: (range: ExportRange) => Partial<ExportRange>,
): ExistingRun => ({
  ...state,
  ranges: state.ranges.map((range, at) => (at === position ? { ...range, ...change(range) } : range)),
});

const withNextAttempt = (state: ExistingRun, position: number): ExistingRun =>
  withRange(state, position, ({ attempt }) => ({ attempt: attempt + 1 }));

/** Changes the open upload that the event refers to, if the range still has it. */
const withUpload = (
  state: ExistingRun,
  event: { readonly range: number; readonly key: string },
  change: (upload: OpenUpload) => Partial<OpenUpload>,
): ExistingRun =>
  withRange(state, event.range, ({ upload }) =>
    upload?.key === event.key ? { upload: { ...upload, ...change(upload) } } : {},
  );
