import type { Model } from './batch_export.ts';
import { CommandRejected } from './errors.ts';
import type { Decider } from './event.ts';
import type { EarlierGenerations, ExportRange } from './exported_files.ts';
import { evolve, type RunEvent } from './run_events.ts';
import {
  type ExistingRun,
  isActiveStatus,
  type RangeAttempt,
  type RunProgress,
  type RunState,
  type RunStatus,
} from './run_state.ts';

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
 * Cancels a run.
 * @param evenPublishing of a deleted export: nobody waits for its manifest, which may be visible already
 * @throws CommandRejected when the run has ended, or else publishing was claimed
 */
export function decideCancel(
  state: RunState,
  reason: string,
  { evenPublishing = false }: { readonly evenPublishing?: boolean } = {},
): RunEvent[] {
  if (state.status === 'Absent') throw new CommandRejected('not_found', 'Not found.');
  if (!isActiveStatus(state.status))
    throw new CommandRejected('conflict', `Cannot cancel a run that is in '${state.status}' status.`);
  if (state.publish_started_at !== null && !evenPublishing)
    throw new CommandRejected(
      'conflict',
      'The run is publishing its manifest and can no longer be cancelled.',
    );
  return [{ type: 'RunCancelled', data: { reason } }];
}

/** Claims publishing of a finished generation. An attempt that finds a claim continues under it. */
export function decidePublish(
  state: RunState,
  generation: number,
  earlier_generations: EarlierGenerations,
): RunEvent {
  const run = requireGeneration(state, generation);
  if (!run.finished)
    throw new RangeError('A generation can be published only after its last row was exported.');
  if (run.publish_started_at !== null) return { type: 'RunPublishResumed', data: { generation } };
  return { type: 'RunPublishStarted', data: { generation, earlier_generations } };
}

/**
 * Withdraws claim number `claim` of publishing, whose attempt sent no manifest. No event if another attempt claimed
 * publishing before or after it, since that one may have sent its manifest, or if the run has ended.
 */
export function decideWithdrawal(state: RunState, generation: number, claim: number): RunEvent[] {
  if (state.status === 'Absent' || !isActiveStatus(state.status)) return [];
  const isOnlyClaim =
    state.publish_started_at !== null && !state.publish_resumed && state.publish_claims === claim;
  if (!isOnlyClaim || state.generation !== generation) return [];
  return [{ type: 'RunPublishWithdrawn', data: { generation } }];
}

/** The delays and the limit of automatic retries. */
export interface RetryPolicy {
  readonly initialSeconds: number;
  readonly maxSeconds: number;
  readonly maxRetries: number;
}

/** Seconds until the automatic retry of a run that is retry `retryNumber` itself; null if the limit is reached. */
export function retryDelaySeconds(retryNumber: number, policy: RetryPolicy): number | null {
  if (retryNumber >= policy.maxRetries) return null;
  return Math.min(policy.initialSeconds * 2 ** retryNumber, policy.maxSeconds);
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
 * - when the barrier timed out, because an open transaction may have added rows before the cursor, and
 * - when publishing was claimed, because the manifest may exist and its generation is used up.
 */
export function progressForRetry(
  state: RunState,
  definition: { readonly model: Model; readonly config_version: number },
): RunProgress | undefined {
  if (state.status === 'Absent' || state.publish_started_at !== null || !state.settled) return undefined;
  if (state.ranges.every(({ upload, files }) => upload === null && files.count === 0)) return undefined;
  const { model, config_version } = state.spec;
  if (model !== definition.model || config_version !== definition.config_version) return undefined;
  return { ...progressOf(state), records_total_count: null, source_fingerprint: null, replacement: null };
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
  encoder: run.encoder,
  ranges: run.ranges,
  rejected_file: run.rejected_file,
});
