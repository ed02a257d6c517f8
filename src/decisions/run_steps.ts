import type { ExportRange } from '../domain/exported_files.ts';
import type { Fingerprint } from '../domain/fingerprint.ts';
import { requireAttempt, requireGeneration, runDecider, RunEnded } from '../domain/run.ts';
import { type ExistingRun, isActiveStatus, type RangeAttempt, type RunState } from '../domain/run_state.ts';
import {
  type Journal,
  type JournalTransaction,
  type LockedStream,
  logLineWrite,
} from '../journal/journal.ts';
import type { DeferredStep } from './deferred_steps.ts';
import type { OtherRuns } from './replaced_runs.ts';
import type { RunEvent } from '../domain/run_events.ts';

export type RunStream = LockedStream<RunState, RunEvent>;

/** The steps of runs. Each is one transaction under the lock of the run's stream, and returns the run after it. */
export type RunSteps = ReturnType<typeof createRunSteps>;

/** What a step may do besides its events. */
export interface StepOptions {
  /** A line of the export's log. */
  readonly line?: string | null;
  /** Steps that are recorded before it, in the same transaction. */
  readonly before?: readonly DeferredStep[];
}

export function createRunSteps(journal: Journal) {
  const step = async (
    runId: string,
    work: (stream: RunStream, transaction: JournalTransaction) => Promise<void>,
    before: readonly DeferredStep[] = [],
  ): Promise<ExistingRun> =>
    journal.transaction(async (transaction) => {
      const stream = await transaction.lock(runDecider, runId);
      for (const earlier of before) await earlier(stream, transaction);
      await work(stream, transaction);
      const state = stream.state();
      if (state.status === 'Absent') throw new RunEnded('Absent');
      return state;
    });
  /** A step of the newest generation. `cause` identifies it within the generation. */
  const generationStep = (
    runId: string,
    generation: number,
    cause: string,
    decide: (run: ExistingRun) => RunEvent[],
    { line = null, before }: StepOptions = {},
  ): Promise<ExistingRun> =>
    step(
      runId,
      async (stream, { later }) => {
        const run = requireGeneration(stream.state(), generation);
        await stream.append(`generation:${generation}/${cause}`, decide(run));
        if (line !== null) later(logLineWrite({ ...logIdsOf(run, runId), level: 'INFO', message: line }));
      },
      before,
    );
  /** A step of the latest attempt at a range. */
  const attemptStep = (
    runId: string,
    attempt: RangeAttempt,
    cause: string,
    decide: (range: ExportRange, run: ExistingRun) => RunEvent[],
    options: StepOptions = {},
  ): Promise<ExistingRun> =>
    generationStep(
      runId,
      attempt.generation,
      cause,
      (run) => decide(requireAttempt(run, attempt).range, run),
      options,
    );
  return { step, generationStep, attemptStep };
}

/** Reserves the interval's next generation. */
export async function reserveNextGeneration(
  stream: RunStream,
  transaction: JournalTransaction,
  run: ExistingRun,
  more: { late_rows?: true; fingerprint?: Fingerprint } = {},
  others?: OtherRuns,
): Promise<void> {
  const generation = await nextGeneration(transaction, run, others);
  await stream.append(`reserve:${generation}`, [
    { type: 'RunGenerationReserved', data: { generation, ...more } },
  ]);
}

/**
 * An interval has at most one active run, so the maximum over all of its runs is the last reserved generation, unless the
 * bucket had a manifest of which the journal knew nothing.
 * @param others as they were read, which still holds for a run that has reserved none
 */
export async function nextGeneration(
  transaction: JournalTransaction,
  run: ExistingRun,
  others?: OtherRuns,
): Promise<number> {
  if (!isActiveStatus(run.status)) throw new RunEnded(run.status);
  // A run that adds late rows to a manifest may have reserved some before.
  if (others && run.generation === 0 && !run.replacement?.base) return others.nextGeneration;
  const { batch_export_id, data_interval_start, data_interval_end } = run.spec;
  const { rows } = await transaction.connection.query<{ next: number }>(
    `select greatest(max(greatest(generation, adopted_generation)), (
         select collapsed_generation from exportd.intervals
         where batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3), 0) + 1 as next
     from exportd.batch_export_runs
     where batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3`,
    [batch_export_id, data_interval_start, data_interval_end],
  );
  return rows[0]?.next ?? 1;
}

/** The range of a step, as its event has it. */
export const rangeStepOf = ({ generation, range }: RangeAttempt) => ({ generation, range });

/** The ids of a run's log lines and notifications. */
export const logIdsOf = (run: ExistingRun, runId: string) => ({
  team_id: run.spec.team_id,
  batch_export_id: run.spec.batch_export_id,
  run_id: runId,
});
