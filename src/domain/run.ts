import { CommandRejected } from './errors.ts';
import type { Decider } from './event.ts';
import type { RunEvent } from './run_events.ts';
import { evolve } from './run_evolution.ts';
import {
  isActiveStatus,
  type ExistingRun,
  type RangeAttempt,
  type RunState,
  type RunStatus,
} from './run_state.ts';
import type { ExportRange } from './exported_files.ts';

export type { RunEvent } from './run_events.ts';
export * from './run_state.ts';
export type {
  CompletedFile,
  ExportedFile,
  ExportRange,
  OpenUpload,
  PlannedPart,
  SortKey,
} from './exported_files.ts';

/** Folds a run's stream. */
export const runDecider: Decider<RunState, RunEvent> = {
  streamType: 'run',
  initialState: { status: 'Absent' },
  evolve,
};

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
export function requireActive(state: RunState): ExistingRun {
  if (state.status === 'Absent' || !isActiveStatus(state.status)) throw new RunEnded(state.status);
  return state;
}

/** The active run, provided that `generation` is still its newest; throws RunEnded or GenerationSuperseded. */
export function requireGeneration(state: RunState, generation: number): ExistingRun {
  const run = requireActive(state);
  if (run.generation !== generation)
    throw new GenerationSuperseded(`Generation ${generation} was replaced by ${run.generation}.`);
  return run;
}

/** The range of an active run, provided that no other attempt has begun since; throws RunEnded or GenerationSuperseded. */
export function requireAttempt(
  state: RunState,
  { generation, range, attempt }: RangeAttempt,
): { readonly run: ExistingRun; readonly range: ExportRange } {
  const run = requireGeneration(state, generation);
  const found = run.ranges[range];
  if (found?.attempt !== attempt)
    throw new GenerationSuperseded('Another attempt of the run has taken the place of this one.');
  return { run, range: found };
}

/** The attempt at a range that a run's state allows now. */
export const attemptOf = (run: ExistingRun, range: number): RangeAttempt => ({
  generation: run.generation,
  range,
  attempt: rangeOf(run, range).attempt,
});

/** A range of a run by its position. @throws RangeError when the run has not so many. */
export function rangeOf({ ranges }: Pick<ExistingRun, 'ranges'>, position: number): ExportRange {
  const range = ranges[position];
  if (!range) throw new RangeError(`The run has no range ${position}.`);
  return range;
}

/**
 * Cancels a run. Refused once publishing was claimed, since the manifest may already be visible; a run in a terminal
 * status is refused too.
 */
export function decideCancel(state: RunState, reason: string): RunEvent[] {
  if (state.status === 'Absent') throw new CommandRejected('not_found', 'Not found.');
  if (!isActiveStatus(state.status))
    throw new CommandRejected('conflict', `Cannot cancel a run that is in '${state.status}' status.`);
  if (state.publish_started_at !== null)
    throw new CommandRejected(
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
  readonly maxSeconds: number;
  readonly maxRetries: number;
}

/** Seconds until the automatic retry after the run with this many retries behind it; null when there is none left. */
export function retryDelaySeconds(retryNumber: number, policy: RetryPolicy): number | null {
  if (retryNumber >= policy.maxRetries) return null;
  return Math.min(policy.initialSeconds * 2 ** retryNumber, policy.maxSeconds);
}
