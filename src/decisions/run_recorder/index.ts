import type { Fingerprint } from '../../domain/fingerprint.ts';
import type { ReplacedRun } from '../../domain/replaced_generation.ts';
import type { ReplacementCheck } from '../../domain/replacement.ts';
import {
  rangeOf,
  requireActive,
  requireAttempt,
  requireGeneration,
  runDecider,
  RunEnded,
} from '../../domain/run.ts';
import type { CompletedFile } from '../../domain/exported_files.ts';
import type { ExistingRun, RangeAttempt } from '../../domain/run_state.ts';
import type { RunEvent } from '../../domain/run_events.ts';
import { readState, type Journal } from '../../journal/journal.ts';
import { writeLogLine, type LogLevel } from '../../journal/log_lines.ts';
import { recordFailedAttempt, type FailedAttempt } from '../record_failed_attempt.ts';
import { readFiles, readReplacedFiles, type RangeFile } from '../read_files.ts';
import { findReplacedRun } from '../replaced_run.ts';
import { createFileRecorder, type FileRecorder } from './record_files.ts';
import { createPublishRecorder, type PublishRecorder } from './record_publishing.ts';
import { createRunSteps, logIdsOf, reserveNextGeneration } from './run_steps.ts';

/** The facts of an event of this type. */
type RunEventData<Type extends RunEvent['type']> = Extract<RunEvent, { type: Type }>['data'];

/**
 * Records the steps of a run's activities. Every step throws RunEnded once the run has ended, and GenerationSuperseded
 * once a newer attempt has started or reserved a generation, so that a zombie can change nothing.
 */
export interface RunRecorder extends FileRecorder, PublishRecorder {
  /** Reads the run, whatever its status. */
  read(runId: string): Promise<ExistingRun>;
  /** Reads the run if it is active. */
  readActive(runId: string): Promise<ExistingRun>;
  /** Records the row count below the cutoff, whether the barrier settled, and the keys that split the interval. */
  recordCount(runId: string, facts: RunEventData<'RunCounted'>): Promise<ExistingRun>;
  /** Records an interval without rows and finishes its export with a generation that has no files. */
  recordEmpty(
    runId: string,
    facts: Pick<RunEventData<'RunCounted'>, 'fingerprint' | 'settled' | 'barrier'> & { encoder: string },
  ): Promise<ExistingRun>;
  /** Finds the run whose manifest the run would replace; null if there is none. */
  findReplaced(run: ExistingRun): Promise<ReplacedRun | null>;
  /** Reads the completed files of the run's generation, in key order. */
  readFiles(runId: string, run: ExistingRun): Promise<readonly RangeFile[]>;
  /** Reads the files of the manifest that a run replaces, in key order. */
  readReplacedFiles(replaced: ReplacedRun): Promise<readonly CompletedFile[]>;
  /** Records how the source compares with the manifest that the run replaces; once before the export and per generation. */
  recordReplacement(runId: string, check: ReplacementCheck): Promise<ExistingRun>;
  /** Starts an attempt at a range: the run is Running, and steps of earlier attempts are rejected. */
  startExport(runId: string, range: number): Promise<ExistingRun>;
  /** Reserves the interval's next generation; with `attempt`, only if that is the latest. */
  reserveGeneration(runId: string, attempt?: RangeAttempt): Promise<ExistingRun>;
  /** Reserves the next generation because late rows arrived after `generation` was finished; the source is `fingerprint` now. */
  reserveForLateRows(runId: string, generation: number, fingerprint: Fingerprint): Promise<ExistingRun>;
  /** Records that the files contain every row of the interval. */
  finishExport(
    runId: string,
    generation: number,
    facts: Omit<RunEventData<'RunExportFinished'>, 'generation'>,
  ): Promise<ExistingRun>;
  /** Records a failure that a step is retried after, unless it was recorded minutes ago. */
  recordFailedAttempt(runId: string, failure: FailedAttempt): Promise<void>;
  /** Writes a line to the export's log. */
  log(run: ExistingRun, runId: string, level: LogLevel, message: string): Promise<void>;
}

/** Creates a run recorder on a journal. */
export function createRunRecorder(journal: Journal): RunRecorder {
  const steps = createRunSteps(journal);
  const { step, generationStep } = steps;
  return {
    ...createFileRecorder(steps),
    ...createPublishRecorder(journal, steps),
    read: async (runId) => {
      const state = await readState(journal, runDecider, runId);
      if (state.status === 'Absent') throw new RunEnded('Absent');
      return state;
    },
    readActive: async (runId) => requireActive(await readState(journal, runDecider, runId)),
    recordCount: (runId, facts) =>
      step(runId, async (stream) => {
        const run = requireActive(stream.state());
        if (run.records_total_count === null)
          await stream.append('counted', [{ type: 'RunCounted', data: facts }]);
      }),
    recordEmpty: (runId, { encoder, ...facts }) =>
      step(runId, async (stream, transaction) => {
        const run = requireActive(stream.state());
        if (run.records_total_count === null)
          await stream.append('counted', [
            { type: 'RunCounted', data: { records_total_count: 0, ...facts, split_keys: [] } },
          ]);
        if (run.finished) return;
        // Inherited files and uploads are obsolete if the interval has no rows.
        const hasInheritedObjects = run.ranges.some(
          ({ upload, files }) => upload !== null || files.count > 0,
        );
        if (run.generation === 0 || hasInheritedObjects)
          await reserveNextGeneration(stream, transaction, run);
        const { generation } = requireActive(stream.state());
        await stream.append(`generation:${generation}/finished`, [
          {
            type: 'RunExportFinished',
            data: { generation, source_rows: 0, fingerprint: facts.fingerprint, encoder },
          },
        ]);
      }),
    findReplaced: ({ spec }) => findReplacedRun(journal, spec),
    readFiles: (runId, run) => readFiles(journal.pool, runId, run),
    readReplacedFiles: (replaced) => readReplacedFiles(journal.pool, replaced),
    recordReplacement: (runId, check) =>
      step(runId, async (stream) => {
        const run = requireActive(stream.state());
        const { replaced, generation } = check;
        const moment = generation === null ? 'before export' : 'after export';
        await stream.append(`replacement:${replaced.run_id}/${run.generation}/${moment}`, [
          { type: 'RunReplacementChecked', data: check },
        ]);
      }),
    startExport: (runId, range) =>
      step(runId, async (stream) => {
        const run = requireActive(stream.state());
        const { attempt } = rangeOf(run, range);
        if (run.status === 'Starting')
          await stream.append('export', [{ type: 'RunExportStarted', data: { range } }]);
        else
          await stream.append(`attempt:${range}/${attempt + 1}`, [
            { type: 'RunAttemptStarted', data: { range } },
          ]);
      }),
    reserveGeneration: (runId, attempt) =>
      step(runId, async (stream, transaction) => {
        const run = attempt ? requireAttempt(stream.state(), attempt).run : requireActive(stream.state());
        await reserveNextGeneration(stream, transaction, run);
      }),
    reserveForLateRows: (runId, generation, fingerprint) =>
      step(runId, async (stream, transaction) => {
        const run = requireGeneration(stream.state(), generation);
        await reserveNextGeneration(stream, transaction, run, { late_rows: true, fingerprint });
      }),
    finishExport: (runId, generation, facts) =>
      generationStep(runId, generation, 'finished', (run) =>
        run.finished ? [] : [{ type: 'RunExportFinished', data: { generation, ...facts } }],
      ),
    recordFailedAttempt: (runId, failure) => recordFailedAttempt(journal, runId, failure),
    log: (run, runId, level, message) =>
      writeLogLine(journal.pool, { ...logIdsOf(run, runId), level, message }),
  };
}
