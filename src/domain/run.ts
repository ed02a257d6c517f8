import type { Model } from './batch_export.ts';
import { CommandRejected } from './errors.ts';
import type { Decider, Recorded } from './event.ts';
import {
  addFiles,
  type CompletedFile,
  type ExportRange,
  noFiles,
  type OpenUpload,
  type PlannedPart,
  totalsOf,
} from './exported_files.ts';
import { adoptedFiles } from './adopted_manifest.ts';
import type { EarlierGenerations } from './earlier_generations.ts';
import type { SortKey } from './sort_key.ts';
import { addFingerprints, type Fingerprint, haveSameRows } from './fingerprint.ts';
import {
  type ExistingRun,
  exportedFingerprint,
  filesOf,
  finishedOf,
  type InheritedProgress,
  isActiveStatus,
  mayBePublished,
  type RangeAttempt,
  type RangeStep,
  type RunPhase,
  type RunProgress,
  type RunSpec,
  type RunState,
  type RunStatus,
  sourceBefore,
  withFailure,
} from './run_state.ts';
import type { RecordedPart, RunEvent, RunEventData } from './run_events.ts';

/** The run with the files that it adds late rows to: all files that its manifest names. */
export function withBase(run: ExistingRun): ExistingRun {
  const [own = openRange(null, null)] = run.ranges;
  const base = run.replacement?.base;
  // A completed run has them already.
  if (!base || run.status === 'Completed') return run;
  const ranges = [{ ...own, files: addFiles(base.files, own.files) }];
  return { ...run, ranges, rejected_file: run.rejected_file ?? base.rejected_file };
}

/** Folds one event into a run's state. */
function evolve(state: RunState, event: Recorded<RunEvent>): RunState {
  if (event.type === 'RunCreated') return createdState(event.data, event.recorded_at);
  if (state.status === 'Absent') return state;
  switch (event.type) {
    case 'RunCounted': {
      const { records_total_count, fingerprint, settled, barrier = null, split_keys } = event.data;
      return {
        ...state,
        records_total_count,
        source_fingerprint: fingerprint,
        settled,
        unsettled_barrier: barrier,
        ranges: split_keys.length === 0 ? state.ranges : rangesBetween(split_keys),
      };
    }
    case 'RunReplacementChecked': {
      const { late_keys: _, ...replacement } = event.data;
      if (!replacement.base) return { ...state, replacement };
      // What was exported before the check has other rows. Late rows are few, and go to one file.
      const ranges = [{ ...openRange(null, null), attempt: state.ranges[0]?.attempt ?? 0 }];
      const records_total_count = replacement.base.late_rows;
      return { ...state, replacement, records_total_count, generation: 0, ranges, rejected_file: null };
    }
    case 'RunExportStarted': {
      const { range, generation } = event.data;
      const started: ExistingRun = { ...withNextAttempt(state, range), status: 'Running' };
      return generation === undefined ? started : withGeneration(started, { generation });
    }
    case 'RunAttemptFailed':
      return {
        ...state,
        failed_attempts: withFailure(state.failed_attempts, event.data.error_type, event.recorded_at),
      };
    case 'RunAttemptStarted':
      return withNextAttempt(state, event.data.range);
    case 'RunGenerationReserved':
      return withGeneration(state, event.data);
    case 'RunKeyTaken': {
      const { range, file } = event.data;
      return range === null ? state : withRange(state, range, () => ({ next_file: file + 1 }));
    }
    case 'RunUploadCreated': {
      const { range, file, key, upload_id, upload_token, part_bytes, encoder, part } = event.data;
      const parts = part ? [plannedPart(state, part)] : [];
      const highest_part_number = part?.part_number ?? 0;
      const upload = { key, upload_id, upload_token, part_bytes, parts, highest_part_number };
      return withMostWritten({
        ...withRange(state, range, () => ({ upload, next_file: file + 1 })),
        encoder,
      });
    }
    case 'RunUploadResumed':
      return withUpload(state, event.data, (upload) => ({
        parts: upload.parts.filter(({ part_number }) => event.data.part_numbers.includes(part_number)),
      }));
    case 'RunPartPlanned': {
      const part = plannedPart(state, event.data.part);
      return withMostWritten(
        withUpload(state, event.data, (upload) => ({
          parts: [...upload.parts, part],
          highest_part_number: Math.max(upload.highest_part_number, part.part_number),
        })),
      );
    }
    case 'RunFileCompleted': {
      const { range, file, finishes_range = false } = event.data;
      const completed = withRange(state, range, ({ files, upload, finished }) => {
        const fingerprint = file.fingerprint ?? fingerprintOfParts(upload);
        if (fingerprint === null) throw new RangeError(`The file ${file.key} has no fingerprint.`);
        return {
          upload: null,
          files: addFiles(files, totalsOf({ ...file, fingerprint })),
          finished: finished || finishes_range,
        };
      });
      return withMostWritten(completed);
    }
    case 'RunRangeFinished':
      return withRange(state, event.data.range, () => ({ upload: null, finished: true }));
    case 'RunRejectedFilePlanned':
      return { ...state, rejected_file: event.data.file };
    case 'RunExportFinished': {
      const { rows, bytes } = filesOf(state);
      return {
        ...state,
        most_written: { rows, bytes },
        phase: {
          name: 'exported',
          finished: {
            source_rows: event.data.source_rows,
            fingerprint: event.data.fingerprint,
            encoder: event.data.encoder,
          },
        },
      };
    }
    case 'RunManifestAdopted':
      return {
        ...state,
        generation: event.data.raised_to,
        adopted: { ...event.data, files: addFiles(...adoptedFiles(event.data).map(totalsOf)) },
        replacement: null,
        claimed_by: [],
        target_commits: undefined,
        phase: withoutClaim(state.phase),
      };
    case 'RunPublishStarted':
    case 'RunPublishResumed':
      return { ...state, phase: claimedPhase(state, event), publish_claims: state.publish_claims + 1 };
    case 'RunPublishWithdrawn':
      return { ...state, phase: withoutClaim(state.phase) };
    case 'RunTargetPlanned':
    case 'RunTargetCommitted': {
      const { target, commit } = event.data;
      const isWritten = event.type === 'RunTargetCommitted';
      return { ...state, target_commits: { ...state.target_commits, [target]: { commit, isWritten } } };
    }
    case 'RunCompleted':
      return {
        ...withBase(state),
        status: 'Completed',
        // What later runs and comparisons need. It is kept for years.
        source_fingerprint: null,
        read_since: finishedOf(state)?.fingerprint?.all_events ? sourceBefore(state) : null,
      };
    case 'RunUnchanged':
      return { ...state, status: 'Completed', source_fingerprint: null };
    case 'RunFailed':
      return { ...state, status: 'Failed' };
    case 'RunFailedRetryable':
      return { ...state, status: 'FailedRetryable' };
    case 'RunTimedOut':
      return { ...state, status: 'TimedOut' };
    case 'RunTerminated':
      return { ...state, status: 'Terminated' };
    case 'RunCancelRequested':
      return { ...state, cancel_requested: event.data.reason };
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

/** The phase of a run whose publishing is claimed. @throws RangeError when its export is not finished */
function claimedPhase(
  { phase }: ExistingRun,
  event: Extract<Recorded<RunEvent>, { type: 'RunPublishStarted' | 'RunPublishResumed' }>,
): RunPhase {
  if (phase.name === 'publishing' && event.type === 'RunPublishResumed')
    return { ...phase, is_resumed: true };
  if (phase.name === 'exporting')
    throw new RangeError('Publishing was claimed before the last row was exported.');
  const earlier = event.type === 'RunPublishStarted' && event.data.earlier_generations;
  return {
    name: 'publishing',
    finished: phase.finished,
    claimed_at: event.recorded_at,
    is_resumed: false,
    ...(earlier && { earlier_generations: earlier }),
  };
}

const withoutClaim = (phase: RunPhase): RunPhase =>
  phase.name === 'publishing' ? { name: 'exported', finished: phase.finished } : phase;

/** The run in a new generation, of which nothing is exported. */
const withGeneration = (
  state: ExistingRun,
  { generation, fingerprint, late_rows }: RunEventData<'RunGenerationReserved'>,
): ExistingRun => ({
  ...state,
  generation,
  read_since: fingerprint ?? null,
  late_generations: state.late_generations + (late_rows === true ? 1 : 0),
  encoder: null,
  ranges: state.ranges.map(({ after, until, attempt }) => ({ ...openRange(after, until), attempt })),
  rejected_file: null,
  claimed_by: [],
  target_commits: undefined,
  phase: { name: 'exporting' },
});

/** A part with its fingerprint. @throws RangeError without one */
function plannedPart({ source_fingerprint }: ExistingRun, part: RecordedPart): PlannedPart {
  const fingerprint = part.fingerprint ?? source_fingerprint;
  if (fingerprint === null)
    throw new RangeError('The part has no fingerprint, and the source was not counted.');
  return { ...part, fingerprint };
}

/** What a run has before its first step. Most of it stays so. */
export const untouchedRun: Omit<ExistingRun, 'status' | 'spec' | 'created_at' | 'ranges'> = {
  records_total_count: null,
  source_fingerprint: null,
  read_since: null,
  settled: true,
  unsettled_barrier: null,
  replacement: null,
  generation: 0,
  late_generations: 0,
  most_written: { rows: 0, bytes: 0 },
  encoder: null,
  rejected_file: null,
  claimed_by: [],
  cancel_requested: null,
  phase: { name: 'exporting' },
  adopted: null,
  failed_attempts: {},
  publish_claims: 0,
};

/** The state of a run that has only been created. */
export const createdState = (
  { inherited, ...spec }: RunSpec & { inherited?: InheritedProgress },
  created_at: string,
): ExistingRun => ({
  ...untouchedRun,
  status: 'Starting',
  spec,
  created_at,
  ranges: [openRange(null, null)],
  ...inherited?.progress,
});

/** A range of which nothing is exported. */
export const openRange = (after: SortKey | null, until: SortKey | null): ExportRange => ({
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

/** The run with the most that it had, if that is more. */
function withMostWritten(run: ExistingRun): ExistingRun {
  const { most_written: most } = run;
  let [rows, bytes] = [0, 0];
  for (const { files, upload } of run.ranges)
    for (const written of [files, ...(upload?.parts ?? [])]) {
      rows += written.rows;
      bytes += written.bytes;
    }
  if (rows <= most.rows && bytes <= most.bytes) return run;
  return { ...run, most_written: { rows: Math.max(rows, most.rows), bytes: Math.max(bytes, most.bytes) } };
}

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

/** Folds the stream of a run. */
export const runDecider: Decider<RunState, RunEvent> = {
  streamType: 'run',
  initialState: { status: 'Absent' },
  evolve,
};

/** The run has a terminal status, so no further step can be recorded. The caller must stop. */
export class RunEnded extends Error {
  override readonly name = 'RunEnded';
  readonly status: RunStatus | 'Absent';
  constructor(status: RunStatus | 'Absent') {
    super(`The run is ${status} and accepts no further steps.`);
    this.status = status;
  }
}

/** The step belongs to a generation or an attempt that another one has replaced. */
export class GenerationSuperseded extends Error {
  override readonly name = 'GenerationSuperseded';
}

/**
 * Returns the state of an active run.
 * @throws RunEnded otherwise.
 */
export function requireActive(state: RunState): ExistingRun {
  if (state.status === 'Absent' || !isActiveStatus(state.status)) throw new RunEnded(state.status);
  return state;
}

/**
 * Returns the active run if `generation` is its newest.
 * @throws RunEnded, GenerationSuperseded.
 */
export function requireGeneration(state: RunState, generation: number): ExistingRun {
  const run = requireActive(state);
  if (run.generation !== generation)
    throw new GenerationSuperseded(`Generation ${generation} was replaced by generation ${run.generation}.`);
  return run;
}

/**
 * Returns the range of an active run if `attempt` is the latest attempt at it.
 * @throws RunEnded, GenerationSuperseded.
 */
export function requireAttempt(
  state: RunState,
  { generation, range, attempt }: RangeAttempt,
): { readonly run: ExistingRun; readonly range: ExportRange } {
  const run = requireGeneration(state, generation);
  const found = run.ranges[range];
  if (found?.attempt !== attempt)
    throw new GenerationSuperseded('Another attempt of the run has replaced this one.');
  return { run, range: found };
}

/** The latest attempt at a range of the run. */
export const attemptOf = (run: ExistingRun, range: number): RangeAttempt => ({
  generation: run.generation,
  range,
  attempt: rangeOf(run, range).attempt,
});

/**
 * Returns a range of the run by its index.
 * @throws RangeError when the run has no such range.
 */
export function rangeOf({ ranges }: Pick<ExistingRun, 'ranges'>, position: number): ExportRange {
  const range = ranges[position];
  if (!range) throw new RangeError(`The run has no range ${position}.`);
  return range;
}

/**
 * Cancels a run. If its manifest may be stored, the cancellation is only requested: publishing asks the bucket first.
 * @param evenPublishing of a deleted export: no run waits for its manifest, which may be visible already
 * @returns no event if it was requested before
 * @throws CommandRejected when the run has ended
 */
export function decideCancel(
  state: RunState,
  reason: string,
  { evenPublishing = false }: { readonly evenPublishing?: boolean } = {},
): RunEvent[] {
  if (state.status === 'Absent') throw new CommandRejected('not_found', 'Not found.');
  if (!isActiveStatus(state.status))
    throw new CommandRejected('conflict', `Cannot cancel a run that is in '${state.status}' status.`);
  if (evenPublishing || !mayBePublished(state)) return [{ type: 'RunCancelled', data: { reason } }];
  return state.cancel_requested === null ? [{ type: 'RunCancelRequested', data: { reason } }] : [];
}

/** A part as it is recorded before it is sent. */
export function recordedPart({ source_fingerprint: counted }: ExistingRun, part: PlannedPart): RecordedPart {
  const isCounted = counted !== null && haveSameRows(part.fingerprint, counted);
  return isCounted ? { ...part, fingerprint: null } : part;
}

/** The rows of the parts of a file; null without parts. */
function fingerprintOfParts(upload: OpenUpload | null): Fingerprint | null {
  const [first, ...more] = upload?.parts.map(({ fingerprint }) => fingerprint) ?? [];
  return first ? addFingerprints(first, ...more) : null;
}

/**
 * Completes a file of an active run. The first file of an interval that is not split is recorded without its fingerprint: the
 * events of its parts have it, and what the run's totals have more than its other files. Most runs have one file.
 */
export function decideFile(
  run: ExistingRun,
  { range, generation, file }: RangeStep & { file: CompletedFile },
  { finishesRange }: { readonly finishesRange: boolean },
): RunEvent {
  const { upload, files } = rangeOf(run, range);
  const isFirst = run.ranges.length === 1 && files.count === 0 && !run.replacement?.base;
  const ofParts = isFirst ? fingerprintOfParts(upload) : null;
  const isOfParts = ofParts !== null && haveSameRows(ofParts, file.fingerprint);
  return {
    type: 'RunFileCompleted',
    data: {
      generation,
      range,
      file: { ...file, fingerprint: isOfParts ? null : file.fingerprint },
      ...(finishesRange && { finishes_range: true }),
    },
  };
}

/** Finishes the generation of an active run; no event if it is finished. `fingerprint`: the source after the last row was read. */
export function decideFinish(
  run: ExistingRun,
  { fingerprint, ...facts }: { source_rows: number; fingerprint: Fingerprint; encoder: string },
): RunEvent[] {
  if (run.phase.name !== 'exporting') return [];
  const isExported = !run.replacement?.base && haveSameRows(fingerprint, exportedFingerprint(run));
  const data = { generation: run.generation, ...facts, fingerprint: isExported ? null : fingerprint };
  return [{ type: 'RunExportFinished', data }];
}

/** Claims publishing of a finished generation. An attempt that finds a claim continues under it. */
export function decidePublish(
  state: RunState,
  generation: number,
  earlier_generations: EarlierGenerations,
): RunEvent {
  const run = requireGeneration(state, generation);
  if (run.phase.name === 'exporting')
    throw new RangeError('A generation can be published only after its last row was exported.');
  if (run.phase.name === 'publishing') return { type: 'RunPublishResumed', data: { generation } };
  const { covers, kept, earlier, elsewhere } = earlier_generations;
  const leavesNothing = covers === null && [kept, earlier, elsewhere].every(({ length }) => length === 0);
  return {
    type: 'RunPublishStarted',
    data: { generation, ...(!leavesNothing && { earlier_generations }) },
  };
}

/**
 * Withdraws claim number `claim` of publishing, whose attempt sent no manifest. No event if another attempt claimed
 * publishing before or after it, since that one may have sent its manifest, or if the run has ended.
 */
export function decideWithdrawal(state: RunState, generation: number, claim: number): RunEvent[] {
  if (state.status === 'Absent' || !isActiveStatus(state.status)) return [];
  const isOnlyClaim =
    state.phase.name === 'publishing' &&
    state.claimed_by.length === 0 &&
    !state.phase.is_resumed &&
    state.publish_claims === claim;
  if (!isOnlyClaim || state.generation !== generation) return [];
  return [{ type: 'RunPublishWithdrawn', data: { generation } }];
}

/**
 * Continues an active run as new: the next run inherits its progress. `closed` ends the current run, `created` creates the
 * run that continues it.
 * @throws RunEnded when the run is not active.
 */
export function decideContinuation(
  state: RunState,
  ids: { readonly run_id: string; readonly next_run_id: string; readonly cursor: string },
): { readonly closed: RunEvent; readonly created: RunEvent } {
  const run = requireActive(state);
  return {
    closed: { type: 'RunContinuedAsNew', data: { next_run_id: ids.next_run_id, cursor: ids.cursor } },
    created: {
      type: 'RunCreated',
      data: {
        ...run.spec,
        continues_run_id: ids.run_id,
        inherited: { run_id: ids.run_id, progress: progressOf(run) },
      },
    },
  };
}

/**
 * Returns the progress that an automatic retry can resume from; undefined if it has to start over. It starts over
 * - under another model or config,
 * - when it adds late rows to a manifest and has not claimed publishing, because they are found again, and
 * - when the barrier timed out, because an open transaction may have added rows before the cursor.
 *
 * If publishing was claimed, the retry publishes the same files under the same generation, and takes a manifest of the run
 * for its own.
 */
export function progressForRetry(
  state: RunState,
  definition: { readonly run_id: string; readonly model: Model; readonly config_version: number },
): RunProgress | undefined {
  if (state.status === 'Absent' || !state.settled) return undefined;
  const addsLateRows = state.replacement?.base !== undefined;
  if (addsLateRows && !mayBePublished(state)) return undefined;
  if (state.ranges.every(({ upload, files }) => upload === null && files.count === 0)) return undefined;
  const { model, config_version } = state.spec;
  if (model !== definition.model || config_version !== definition.config_version) return undefined;
  return {
    ...progressOf(state),
    ...(!addsLateRows && {
      records_total_count: null,
      source_fingerprint: null,
      read_since: sourceBefore(state),
      replacement: null,
    }),
    claimed_by:
      state.phase.name === 'publishing' ? [...state.claimed_by, definition.run_id] : state.claimed_by,
  };
}

const progressOf = (run: ExistingRun): RunProgress => ({
  records_total_count: run.records_total_count,
  source_fingerprint: run.source_fingerprint,
  read_since: run.read_since,
  settled: run.settled,
  unsettled_barrier: run.unsettled_barrier,
  replacement: run.replacement,
  generation: run.generation,
  late_generations: run.late_generations,
  most_written: run.most_written,
  encoder: run.encoder,
  ranges: run.ranges,
  rejected_file: run.rejected_file,
  claimed_by: run.claimed_by,
  cancel_requested: run.cancel_requested,
  target_commits: run.target_commits,
});
