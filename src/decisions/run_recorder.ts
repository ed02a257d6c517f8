import {
  decidePublish,
  filesOf,
  isActiveStatus,
  GenerationSuperseded,
  rangeOf,
  requireActive,
  requireAttempt,
  requireGeneration,
  runDecider,
  RunEnded,
  type CompletedFile,
  type ExportedFile,
  type ExportRange,
  type ExistingRun,
  type PlannedPart,
  type RangeAttempt,
  type RunEvent,
  type RunState,
} from '../domain/run.ts';
import type { Fingerprint } from '../domain/fingerprint.ts';
import type { ReplacedRun } from '../domain/replaced_generation.ts';
import type { ReplacementCheck } from '../domain/replacement.ts';
import type { Manifest } from '../destination/manifest.ts';
import { readState, type Journal, type JournalTransaction, type LockedStream } from '../journal/journal.ts';
import { writeLogLine, type LogLevel } from '../journal/log_lines.ts';
import { startComparisons } from './due_comparisons.ts';
import { dayOf, resolveIncidents, storeNotification } from './notifications.ts';
import { recordFailedAttempt, type FailedAttempt } from './record_failed_attempt.ts';
import { nothingEarlier } from '../domain/earlier_generations.ts';
import { readAdoptedManifest } from './adopted_manifest.ts';
import { hasPublished, mayHavePublished, readEarlierGenerations } from './earlier_generations.ts';
import { findReplacedRun } from './replaced_run.ts';

/** A file that starts, and the encoder of its bytes. */
export interface StartedFile {
  /** The file's number within its range. */
  readonly file: number;
  readonly key: string;
  readonly upload_token: string;
  readonly encoder: string;
}

/** A file with its new upload. */
export interface CreatedUpload extends StartedFile {
  readonly upload_id: string;
  /** The size of every part but the last, if the destination requires one size; else null. */
  readonly part_bytes: number | null;
}

/**
 * Records the steps of a run's activities. Every step throws RunEnded once the run has ended, and GenerationSuperseded
 * once a newer attempt has started or reserved a generation, so that a zombie can change nothing.
 */
export interface RunRecorder {
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
  /** Records how the source compares with the manifest that the run replaces; once before the export and per generation. */
  recordReplacement(runId: string, check: ReplacementCheck): Promise<ExistingRun>;
  /** Starts an attempt at a range: the run is Running, and steps of earlier attempts are rejected. */
  startExport(runId: string, range: number): Promise<ExistingRun>;
  /** Reserves the interval's next generation; with `attempt`, only if that is the latest. */
  reserveGeneration(runId: string, attempt?: RangeAttempt): Promise<ExistingRun>;
  /** Reserves the next generation because late rows arrived after `generation` was finished; the source is `fingerprint` now. */
  reserveForLateRows(runId: string, generation: number, fingerprint: Fingerprint): Promise<ExistingRun>;
  recordUpload(runId: string, attempt: RangeAttempt, upload: CreatedUpload): Promise<ExistingRun>;
  /** Records a file of one part before it is written in one request. */
  planWholeFile(
    runId: string,
    attempt: RangeAttempt,
    file: StartedFile,
    part: PlannedPart,
  ): Promise<ExistingRun>;
  /**
   * Records that another object has the key of a file. Reserves the next generation, unless files of this one are
   * complete: then the next file has the next number.
   */
  recordTakenKey(
    runId: string,
    attempt: RangeAttempt,
    taken: Pick<StartedFile, 'file' | 'key'>,
  ): Promise<ExistingRun>;
  /** Resumes the range's open upload with the parts that exist in S3. */
  resumeUpload(
    runId: string,
    attempt: RangeAttempt,
    key: string,
    partNumbers: readonly number[],
  ): Promise<ExistingRun>;
  /** Records a part before it is sent. Part numbers cannot be reused, so that no part is ever replaced. */
  planPart(runId: string, attempt: RangeAttempt, key: string, part: PlannedPart): Promise<void>;
  /** Returns the run if `attempt` is the latest. */
  requireAttempt(runId: string, attempt: RangeAttempt): Promise<ExistingRun>;
  recordFile(runId: string, attempt: RangeAttempt, file: CompletedFile): Promise<ExistingRun>;
  /** Records that the files contain every row of the range. */
  finishRange(runId: string, attempt: RangeAttempt): Promise<ExistingRun>;
  /** Records the file of the generation's rejected rows before it is written. Idempotent. */
  planRejectedFile(runId: string, generation: number, file: ExportedFile): Promise<ExistingRun>;
  /** Records that the files contain every row of the interval. */
  finishExport(
    runId: string,
    generation: number,
    facts: Omit<RunEventData<'RunExportFinished'>, 'generation'>,
  ): Promise<ExistingRun>;
  /**
   * Claims publishing and decides what stays of the generations before. From here on the run cannot be cancelled.
   * @throws ConfigVersionNotFound
   */
  startPublish(runId: string, generation: number): Promise<ExistingRun>;
  /** Whether a run of the interval published with this id, so that the journal knows its manifest. */
  hasPublished(run: ExistingRun, otherRunId: string): Promise<boolean>;
  /** Whether another run of the interval has claimed publishing, so that its manifest may be stored. */
  mayHavePublished(run: ExistingRun, runId: string): Promise<boolean>;
  /**
   * Records that another manifest than the journal knows is the current one. The run keeps its files, continues with a
   * generation above the manifest's and can be cancelled again.
   */
  adoptManifest(runId: string, generation: number, manifest: Manifest): Promise<ExistingRun>;
  /** `expiresAt`: when a lifecycle rule of the bucket deletes the manifest; null without a rule. */
  complete(runId: string, generation: number, manifestKey: string, expiresAt?: string | null): Promise<void>;
  /** Records a failure that a step is retried after, unless it was recorded minutes ago. */
  recordFailedAttempt(runId: string, failure: FailedAttempt): Promise<void>;
  /** Writes a line to the export's log. */
  log(run: ExistingRun, runId: string, level: LogLevel, message: string): Promise<void>;
}

type RunStream = LockedStream<RunState, RunEvent>;
/** The facts of an event of this type. */
type RunEventData<Type extends RunEvent['type']> = Extract<RunEvent, { type: Type }>['data'];

/** Creates a run recorder on a journal. */
export function createRunRecorder(journal: Journal): RunRecorder {
  const step = async (
    runId: string,
    work: (stream: RunStream, transaction: JournalTransaction) => Promise<void>,
  ): Promise<ExistingRun> =>
    journal.transaction(async (transaction) => {
      const stream = await transaction.lock(runDecider, runId);
      await work(stream, transaction);
      const state = stream.state();
      if (state.status === 'Absent') throw new RunEnded('Absent');
      return state;
    });
  const generationStep = (
    runId: string,
    generation: number,
    cause: string,
    decide: (run: ExistingRun) => RunEvent[],
  ): Promise<ExistingRun> =>
    step(runId, async (stream) => {
      const run = requireGeneration(stream.state(), generation);
      await stream.append(`generation:${generation}/${cause}`, decide(run));
    });
  const attemptStep = (
    runId: string,
    attempt: RangeAttempt,
    cause: string,
    decide: (range: ExportRange) => RunEvent[],
  ): Promise<ExistingRun> =>
    generationStep(runId, attempt.generation, cause, (run) => decide(requireAttempt(run, attempt).range));
  const reserve = async (
    stream: RunStream,
    transaction: JournalTransaction,
    run: ExistingRun,
    more: { late_rows?: true; fingerprint?: Fingerprint } = {},
  ): Promise<void> => {
    const generation = await nextGeneration(transaction, run);
    await stream.append(`reserve:${generation}`, [
      { type: 'RunGenerationReserved', data: { generation, ...more } },
    ]);
  };

  return {
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
          ({ upload, files }) => upload !== null || files.length > 0,
        );
        if (run.generation === 0 || hasInheritedObjects) await reserve(stream, transaction, run);
        const { generation } = requireActive(stream.state());
        await stream.append(`generation:${generation}/finished`, [
          {
            type: 'RunExportFinished',
            data: { generation, source_rows: 0, fingerprint: facts.fingerprint, encoder },
          },
        ]);
      }),
    findReplaced: ({ spec }) => findReplacedRun(journal, spec),
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
        await reserve(stream, transaction, run);
      }),
    reserveForLateRows: (runId, generation, fingerprint) =>
      step(runId, async (stream, transaction) => {
        const run = requireGeneration(stream.state(), generation);
        await reserve(stream, transaction, run, { late_rows: true, fingerprint });
      }),
    recordUpload: (runId, attempt, { upload_id, ...upload }) =>
      attemptStep(runId, attempt, `upload:${upload_id}`, () => [
        { type: 'RunUploadCreated', data: { ...rangeStepOf(attempt), ...upload, upload_id } },
      ]),
    planWholeFile: (runId, attempt, file, part) =>
      attemptStep(runId, attempt, `whole:${file.key}/${file.upload_token}`, () => {
        const step = rangeStepOf(attempt);
        return [
          { type: 'RunUploadCreated', data: { ...step, ...file, upload_id: null, part_bytes: null } },
          { type: 'RunPartPlanned', data: { ...step, key: file.key, part } },
        ];
      }),
    recordTakenKey: (runId, attempt, { file, key }) =>
      step(runId, async (stream, transaction) => {
        const { run } = requireAttempt(stream.state(), attempt);
        await stream.append(`taken:${attempt.generation}/${key}`, [
          { type: 'RunKeyTaken', data: { ...rangeStepOf(attempt), file, key } },
        ]);
        const { backfill_id, data_interval_start, data_interval_end } = run.spec;
        await storeNotification(transaction.connection, {
          ...logIdsOf(run, runId),
          type: 'run.key_taken',
          // A prefix with the objects of another export has thousands of them.
          cause: dayOf(transaction.now),
          backfill_id,
          status: run.status,
          latest_error: null,
          data_interval_start,
          data_interval_end,
        });
        if (filesOf(run).length === 0) await reserve(stream, transaction, run);
      }),
    resumeUpload: (runId, attempt, key, partNumbers) =>
      attemptStep(runId, attempt, `resume:${key}/${attempt.attempt}`, ({ upload }) => {
        const keptParts = (upload?.parts ?? []).filter((part) => partNumbers.includes(part.part_number));
        return [
          {
            type: 'RunUploadResumed',
            data: {
              ...rangeStepOf(attempt),
              key,
              part_numbers: keptParts.map((part) => part.part_number),
              rows: keptParts.reduce((sum, part) => sum + part.rows, 0),
              bytes: keptParts.reduce((sum, part) => sum + part.bytes, 0),
            },
          },
        ];
      }),
    planPart: async (runId, attempt, key, part) => {
      await attemptStep(runId, attempt, `part:${key}/${part.part_number}`, ({ upload }) => {
        if (upload?.key !== key || part.part_number <= upload.highest_part_number)
          throw new GenerationSuperseded(`Part ${part.part_number} of ${key} was already planned.`);
        return [{ type: 'RunPartPlanned', data: { ...rangeStepOf(attempt), key, part } }];
      });
    },
    requireAttempt: (runId, attempt) => attemptStep(runId, attempt, 'checked', () => []),
    recordFile: (runId, attempt, file) =>
      attemptStep(runId, attempt, `file:${file.key}`, () => [
        { type: 'RunFileCompleted', data: { ...rangeStepOf(attempt), file } },
      ]),
    finishRange: (runId, attempt) =>
      attemptStep(runId, attempt, `range:${attempt.range}`, ({ finished }) =>
        finished ? [] : [{ type: 'RunRangeFinished', data: rangeStepOf(attempt) }],
      ),
    planRejectedFile: (runId, generation, file) =>
      generationStep(runId, generation, 'rejected', (run) =>
        run.rejected_file ? [] : [{ type: 'RunRejectedFilePlanned', data: { generation, file } }],
      ),
    finishExport: (runId, generation, facts) =>
      generationStep(runId, generation, 'finished', (run) =>
        run.finished ? [] : [{ type: 'RunExportFinished', data: { generation, ...facts } }],
      ),
    startPublish: async (runId, generation) => {
      const { spec } = requireActive(await readState(journal, runDecider, runId));
      const replaced = await findReplacedRun(journal, spec);
      return step(runId, async (stream, { connection }) => {
        const run = requireGeneration(stream.state(), generation);
        const earlier = replaced ? await readEarlierGenerations(connection, run, replaced) : nothingEarlier;
        await stream.append(`generation:${generation}/publish`, decidePublish(run, generation, earlier));
      });
    },
    hasPublished: (run, otherRunId) => hasPublished(journal.pool, run.spec, otherRunId),
    mayHavePublished: (run, runId) => mayHavePublished(journal.pool, run.spec, runId),
    adoptManifest: async (runId, generation, manifest) => {
      const { spec } = requireActive(await readState(journal, runDecider, runId));
      const found = await readAdoptedManifest(journal.pool, spec, manifest);
      return step(runId, async (stream, transaction) => {
        const run = requireGeneration(stream.state(), generation);
        const next = Math.max(await nextGeneration(transaction, run), found.generation + 1);
        const raised_to = generation === 0 ? null : next;
        await stream.append(`adopt:${found.run_id}/${found.generation}`, [
          { type: 'RunManifestAdopted', data: { ...found, raised_to } },
        ]);
      });
    },
    complete: async (runId, generation, manifestKey, expiresAt = null) => {
      await step(runId, async (stream, { connection }) => {
        const state = stream.state();
        if (state.status === 'Completed') return;
        const run = requireGeneration(state, generation);
        await stream.append('ended', [
          {
            type: 'RunCompleted',
            data: {
              manifest_key: manifestKey,
              expires_at: expiresAt,
              covers: run.earlier_generations.covers,
            },
          },
        ]);
        const rows = filesOf(run).reduce((sum, file) => sum + file.rows, 0);
        await startComparisons(connection, runId, run, rows + (run.rejected_file?.rows ?? 0));
        const { data_interval_start: start, data_interval_end: end } = run.spec;
        await writeLogLine(connection, {
          ...logIdsOf(run, runId),
          level: 'INFO',
          message: `Exported ${rows} records of ${start} to ${end}. Manifest: ${manifestKey}.`,
        });
        const removed = describeRemovedRows(run, rows);
        if (removed !== null)
          await writeLogLine(connection, { ...logIdsOf(run, runId), level: 'WARNING', message: removed });
        await resolveIncidents(connection, {
          ...logIdsOf(run, runId),
          cause: runId,
          backfill_id: run.spec.backfill_id,
          status: 'Completed',
          latest_error: null,
          data_interval_start: start,
          data_interval_end: end,
        });
      });
    },
    recordFailedAttempt: (runId, failure) => recordFailedAttempt(journal, runId, failure),
    log: (run, runId, level, message) =>
      writeLogLine(journal.pool, { ...logIdsOf(run, runId), level, message }),
  };
}

/** What a run that was allowed to shrink its interval removes; null if it has as many rows as the former generation. */
function describeRemovedRows({ replacement, rejected_file }: ExistingRun, rows: number): string | null {
  if (replacement?.outcome !== 'shrink_allowed') return null;
  const removed = replacement.bucket_rows - rows - (rejected_file?.rows ?? 0);
  if (removed <= 0) return null;
  return `The run was allowed to remove rows: generation ${replacement.replaced.generation} had ${removed} more. Its files will be deleted.`;
}

const rangeStepOf = ({ generation, range }: RangeAttempt) => ({ generation, range });

const logIdsOf = (run: ExistingRun, runId: string) => ({
  team_id: run.spec.team_id,
  batch_export_id: run.spec.batch_export_id,
  run_id: runId,
});

/**
 * An interval has at most one active run, so the maximum over all of its runs is the last reserved generation, unless the
 * bucket had a manifest of which the journal knew nothing.
 */
async function nextGeneration(transaction: JournalTransaction, run: ExistingRun): Promise<number> {
  if (!isActiveStatus(run.status)) throw new RunEnded(run.status);
  const { batch_export_id, data_interval_start, data_interval_end } = run.spec;
  const { rows } = await transaction.connection.query<{ next: number }>(
    `select coalesce(max(greatest(generation, adopted_generation)), 0) + 1 as next from exportd.batch_export_runs
     where batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3`,
    [batch_export_id, data_interval_start, data_interval_end],
  );
  return rows[0]?.next ?? 1;
}
