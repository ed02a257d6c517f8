import {
  decideFinish,
  GenerationSuperseded,
  requireActive,
  requireGeneration,
  runDecider,
} from '../domain/run.ts';
import type { RunEvent, RunEventData } from '../domain/run_events.ts';
import type { ExistingRun, RunState } from '../domain/run_state.ts';
import type { JournalTransaction, LockedStream } from '../journal/journal.ts';
import type { OtherRuns, RunAmongOthers } from './replaced_runs.ts';

/** A step of a run, as it is recorded in the transaction of a later one. It throws like any step. */
export type DeferredStep = (
  stream: LockedStream<RunState, RunEvent>,
  transaction: Pick<JournalTransaction, 'later'>,
) => Promise<void>;

const withTime = (event: RunEvent) => ({ ...event, recorded_at: new Date().toISOString() });

/** An active run after events that are still to be recorded, with the clock of this process. */
export const stateAfter = (run: ExistingRun, events: readonly RunEvent[]): ExistingRun =>
  requireActive(events.map(withTime).reduce<RunState>(runDecider.evolve, run));

/**
 * Steps of an attempt that are recorded together with a later one, since nothing outside depends on them before that. Each decides
 * twice: when it is added, of the run as the attempt knows it, and under the lock of the run's stream, which rejects it there
 * if another attempt has come first.
 */
export class DeferredSteps {
  readonly #steps: DeferredStep[] = [];

  get isEmpty(): boolean {
    return this.#steps.length === 0;
  }

  /** Adds a step. @returns the run after it, with the clock of this process */
  async add(runId: string, run: ExistingRun, step: DeferredStep): Promise<ExistingRun> {
    let state = run;
    const stream: Parameters<DeferredStep>[0] = {
      id: runId,
      state: () => state,
      append: (_, events) => {
        state = stateAfter(state, events);
        return Promise.resolve(events.map(withTime));
      },
    };
    await step(stream, { later: () => undefined });
    this.#steps.push(step);
    return state;
  }

  /** The steps since it was last called, in their order. */
  take(): readonly DeferredStep[] {
    return this.#steps.splice(0);
  }
}

/** A run as its next step begins: what it finds of others, and steps that are recorded with that step. */
export interface PreparedRun extends RunAmongOthers {
  readonly deferred: DeferredSteps;
}

/** The step that records how many rows an interval has; nothing if that is recorded. */
export const countStep =
  (facts: RunEventData<'RunCounted'>): DeferredStep =>
  async (stream) => {
    const run = requireActive(stream.state());
    if (run.records_total_count === null)
      await stream.append('counted', [{ type: 'RunCounted', data: facts }]);
  };

/** What is recorded of an interval without rows, which has no file and so no encoder. */
export interface EmptyInterval extends Pick<
  RunEventData<'RunCounted'>,
  'fingerprint' | 'settled' | 'barrier'
> {
  readonly encoder: string;
}

/** The count of an interval without rows. */
export function countOfNone(empty: EmptyInterval): RunEventData<'RunCounted'> {
  const { encoder: _, ...facts } = empty;
  return { records_total_count: 0, ...facts, split_keys: [] };
}

/** The step that counts and finishes an interval without rows, of which no attempt has recorded anything. */
export const emptyStep =
  (empty: EmptyInterval, { nextGeneration: generation }: OtherRuns): DeferredStep =>
  async (stream) => {
    const run = requireActive(stream.state());
    if (!isUntouched(run) || run.records_total_count !== null)
      throw new GenerationSuperseded('Another attempt of the run has started.');
    const events: RunEvent[] = [
      { type: 'RunCounted', data: countOfNone(empty) },
      { type: 'RunGenerationReserved', data: { generation } },
    ];
    const { fingerprint, encoder } = empty;
    const finished = decideFinish(stateAfter(run, events), { source_rows: 0, fingerprint, encoder });
    await stream.append('counted', [...events, ...finished]);
  };

/**
 * The step that starts the first attempt at a run of one range. It reserves the generation that the attempt expects; the run of
 * another attempt has one.
 */
export const firstAttemptStep =
  ({ nextGeneration: generation }: OtherRuns): DeferredStep =>
  async (stream) => {
    const run = requireActive(stream.state());
    if (!isUntouched(run)) throw new GenerationSuperseded('Another attempt of the run has started.');
    await stream.append('export', [{ type: 'RunExportStarted', data: { range: 0, generation } }]);
  };

/** Whether no attempt at a run of one range has recorded anything, and it has inherited nothing. */
export const isUntouched = ({ status, generation, ranges, replacement }: ExistingRun): boolean =>
  status === 'Starting' &&
  generation === 0 &&
  replacement?.base === undefined &&
  ranges.length === 1 &&
  ranges.every(({ attempt, upload, files }) => attempt === 0 && upload === null && files.count === 0);

/** The step that records that the files contain every row of the interval. */
export const finishStep =
  (generation: number, facts: Parameters<typeof decideFinish>[1]): DeferredStep =>
  async (stream) => {
    const run = requireGeneration(stream.state(), generation);
    await stream.append(`generation:${generation}/finished`, decideFinish(run, facts));
  };
