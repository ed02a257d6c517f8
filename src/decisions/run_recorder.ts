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
  type SortKey,
} from '../domain/run.ts';
import { readState, type Journal, type JournalTransaction, type LockedStream } from '../journal/journal.ts';
import { writeLogLine, type LogLevel } from '../journal/log_lines.ts';
import { resolveIncidents } from './notifications.ts';

/** An upload as the destination began it, with the encoder that makes its bytes. */
export interface CreatedUpload {
  /** The file's number within its range. */
  readonly file: number;
  readonly key: string;
  readonly upload_id: string;
  readonly upload_token: string;
  readonly encoder: string;
}

/**
 * The facts that a run's activities record. Every step is refused with RunEnded once the run is terminal, and with
 * GenerationSuperseded once another attempt began or reserved a newer generation, so a zombie can change nothing.
 */
export interface RunRecorder {
  /** The run as it stands, whatever its status. */
  read(runId: string): Promise<ExistingRun>;
  /** The run while it is active. */
  readActive(runId: string): Promise<ExistingRun>;
  /** Records how many rows lie below the cut, whether the barrier opened by itself, and where the interval is cut. */
  recordCount(
    runId: string,
    facts: { records_total_count: number; settled: boolean; split_keys: readonly SortKey[] },
  ): Promise<ExistingRun>;
  /** The same of an interval without rows, whose export is finished with that: under a generation of no file. */
  recordEmpty(runId: string, facts: { settled: boolean; encoder: string }): Promise<ExistingRun>;
  /** An attempt at a range begins: the run is Running, and whatever an earlier one still wants to record is refused. */
  startExport(runId: string, range: number): Promise<ExistingRun>;
  /** Reserves the interval's next generation, of no file yet; an attempt's only while it lasts. */
  reserveGeneration(runId: string, attempt?: RangeAttempt): Promise<ExistingRun>;
  /** The same because the source has other rows than were exported: a finished generation is exported again. */
  reserveForLateRows(runId: string, generation: number): Promise<ExistingRun>;
  recordUpload(runId: string, attempt: RangeAttempt, upload: CreatedUpload): Promise<ExistingRun>;
  /** The attempt goes on with the range's open upload, keeping only the parts that S3 has. */
  resumeUpload(
    runId: string,
    attempt: RangeAttempt,
    key: string,
    partNumbers: readonly number[],
  ): Promise<ExistingRun>;
  /** Records a part before it is sent. A number that was planned before is refused, so no part is ever replaced. */
  planPart(runId: string, attempt: RangeAttempt, key: string, part: PlannedPart): Promise<void>;
  /** The run, provided that the attempt may still go on with it. */
  requireAttempt(runId: string, attempt: RangeAttempt): Promise<ExistingRun>;
  recordFile(runId: string, attempt: RangeAttempt, file: CompletedFile): Promise<ExistingRun>;
  /** Every row of the range is in its files. */
  finishRange(runId: string, attempt: RangeAttempt): Promise<ExistingRun>;
  /** Records the file of the generation's rejected rows before it is written; one that is recorded stays as it is. */
  planRejectedFile(runId: string, generation: number, file: ExportedFile): Promise<ExistingRun>;
  /** Every row of the interval is in the run's files. */
  finishExport(
    runId: string,
    generation: number,
    facts: { source_rows: number; encoder: string },
  ): Promise<ExistingRun>;
  /** Claims publishing; from here on the run cannot be cancelled. */
  startPublish(runId: string, generation: number): Promise<ExistingRun>;
  complete(runId: string, generation: number, manifestKey: string): Promise<void>;
  /** Writes a line of the export's log. */
  log(run: ExistingRun, runId: string, level: LogLevel, message: string): Promise<void>;
}

type RunStream = LockedStream<RunState, RunEvent>;

/** The steps on a journal. */
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
  const stepOf = (
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
    stepOf(runId, attempt.generation, cause, (run) => decide(requireAttempt(run, attempt).range));
  const reserve = async (
    stream: RunStream,
    transaction: JournalTransaction,
    run: ExistingRun,
    more: { late_rows?: true } = {},
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
    recordEmpty: (runId, { settled, encoder }) =>
      step(runId, async (stream, transaction) => {
        const run = requireActive(stream.state());
        if (run.records_total_count === null)
          await stream.append('counted', [
            { type: 'RunCounted', data: { records_total_count: 0, settled, split_keys: [] } },
          ]);
        if (run.finished) return;
        // What was inherited is of no use without rows.
        const hasSent = run.ranges.some(({ upload, files }) => upload !== null || files.length > 0);
        if (run.generation === 0 || hasSent) await reserve(stream, transaction, run);
        const { generation } = requireActive(stream.state());
        await stream.append(`generation:${generation}/finished`, [
          { type: 'RunExportFinished', data: { generation, source_rows: 0, encoder } },
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
    reserveForLateRows: (runId, generation) =>
      step(runId, async (stream, transaction) => {
        const run = requireGeneration(stream.state(), generation);
        await reserve(stream, transaction, run, { late_rows: true });
      }),
    recordUpload: (runId, attempt, { upload_id, ...upload }) =>
      attemptStep(runId, attempt, `upload:${upload_id}`, () => [
        { type: 'RunUploadCreated', data: { ...placeOf(attempt), ...upload, upload_id } },
      ]),
    resumeUpload: (runId, attempt, key, partNumbers) =>
      attemptStep(runId, attempt, `resume:${key}/${attempt.attempt}`, ({ upload }) => {
        const kept = (upload?.parts ?? []).filter((part) => partNumbers.includes(part.part_number));
        return [
          {
            type: 'RunUploadResumed',
            data: {
              ...placeOf(attempt),
              key,
              part_numbers: kept.map((part) => part.part_number),
              rows: kept.reduce((sum, part) => sum + part.rows, 0),
              bytes: kept.reduce((sum, part) => sum + part.bytes, 0),
            },
          },
        ];
      }),
    planPart: async (runId, attempt, key, part) => {
      await attemptStep(runId, attempt, `part:${key}/${part.part_number}`, ({ upload }) => {
        if (upload?.key !== key || part.part_number <= upload.highest_part_number)
          throw new GenerationSuperseded(`Part ${part.part_number} of ${key} was planned before.`);
        return [{ type: 'RunPartPlanned', data: { ...placeOf(attempt), key, part } }];
      });
    },
    requireAttempt: (runId, attempt) => attemptStep(runId, attempt, 'checked', () => []),
    recordFile: (runId, attempt, file) =>
      attemptStep(runId, attempt, `file:${file.key}`, () => [
        { type: 'RunFileCompleted', data: { ...placeOf(attempt), file } },
      ]),
    finishRange: (runId, attempt) =>
      attemptStep(runId, attempt, `range:${attempt.range}`, ({ finished }) =>
        finished ? [] : [{ type: 'RunRangeFinished', data: placeOf(attempt) }],
      ),
    planRejectedFile: (runId, generation, file) =>
      stepOf(runId, generation, 'rejected', (run) =>
        run.rejected_file ? [] : [{ type: 'RunRejectedFilePlanned', data: { generation, file } }],
      ),
    finishExport: (runId, generation, facts) =>
      stepOf(runId, generation, 'finished', (run) =>
        run.finished ? [] : [{ type: 'RunExportFinished', data: { generation, ...facts } }],
      ),
    startPublish: (runId, generation) =>
      stepOf(runId, generation, 'publish', (run) => decidePublish(run, generation)),
    complete: async (runId, generation, manifestKey) => {
      await step(runId, async (stream, { connection }) => {
        const state = stream.state();
        if (state.status === 'Completed') return;
        const run = requireGeneration(state, generation);
        await stream.append('ended', [{ type: 'RunCompleted', data: { manifest_key: manifestKey } }]);
        const rows = filesOf(run).reduce((sum, file) => sum + file.rows, 0);
        const { data_interval_start: start, data_interval_end: end } = run.spec;
        await writeLogLine(connection, {
          ...subjectOf(run, runId),
          level: 'INFO',
          message: `Batch export of ${start} to ${end} finished with ${rows} records; manifest ${manifestKey}.`,
        });
        await resolveIncidents(connection, {
          ...subjectOf(run, runId),
          cause: runId,
          backfill_id: run.spec.backfill_id,
          status: 'Completed',
          latest_error: null,
          data_interval_start: start,
          data_interval_end: end,
        });
      });
    },
    log: (run, runId, level, message) =>
      writeLogLine(journal.pool, { ...subjectOf(run, runId), level, message }),
  };
}

const placeOf = ({ generation, range }: RangeAttempt) => ({ generation, range });

const subjectOf = (run: ExistingRun, runId: string) => ({
  team_id: run.spec.team_id,
  batch_export_id: run.spec.batch_export_id,
  run_id: runId,
});

/** One run of an interval is active at a time, so the newest generation that any of its runs reserved is the last. */
async function nextGeneration(transaction: JournalTransaction, run: ExistingRun): Promise<number> {
  if (!isActiveStatus(run.status)) throw new RunEnded(run.status);
  const { batch_export_id, data_interval_start, data_interval_end } = run.spec;
  const { rows } = await transaction.connection.query<{ next: number }>(
    `select coalesce(max(generation), 0) + 1 as next from exportd.batch_export_runs
     where batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3`,
    [batch_export_id, data_interval_start, data_interval_end],
  );
  return rows[0]?.next ?? 1;
}
