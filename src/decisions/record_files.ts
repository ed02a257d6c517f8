import type { CompletedFile, ExportedFile, PlannedPart } from '../domain/exported_files.ts';
import {
  decideFile,
  GenerationSuperseded,
  recordedPart,
  requireAttempt,
  requireGeneration,
} from '../domain/run.ts';
import { filesOf, type RangeAttempt } from '../domain/run_state.ts';
import { logLineWrite } from '../journal/journal.ts';
import type { DeferredStep } from './deferred_steps.ts';
import {
  logIdsOf,
  rangeStepOf,
  reserveNextGeneration,
  type RunSteps,
  type RunStream,
  type StepOptions,
} from './run_steps.ts';
import type { RunEventData } from '../domain/run_events.ts';

/** A file that starts, and the encoder of its bytes. */
interface StartedFile {
  /** The file's number within its range. */
  readonly file: number;
  readonly key: string;
  readonly upload_token: string;
  readonly encoder: string;
}

/** Records what an attempt writes: uploads, parts and files, each before it is sent or after it is complete. */
export const createFileRecorder = ({ step, generationStep, attemptStep }: RunSteps) => ({
  /** `part_bytes`: the size of every part but the last, if the destination requires one size; else null. */
  recordUpload: (
    runId: string,
    attempt: RangeAttempt,
    upload: StartedFile & { readonly upload_id: string; readonly part_bytes: number | null },
    options: StepOptions = {},
  ) =>
    attemptStep(
      runId,
      attempt,
      `upload:${upload.upload_id}`,
      () => [{ type: 'RunUploadCreated', data: { ...rangeStepOf(attempt), ...upload } }],
      options,
    ),
  /** Records a file of one part before it is written in one request. */
  planWholeFile: (
    runId: string,
    attempt: RangeAttempt,
    file: StartedFile,
    part: PlannedPart,
    options: StepOptions = {},
  ) =>
    attemptStep(
      runId,
      attempt,
      `whole:${file.upload_token}`,
      (_, run) => {
        const written = { ...file, upload_id: null, part_bytes: null, part: recordedPart(run, part) };
        return [{ type: 'RunUploadCreated', data: { ...rangeStepOf(attempt), ...written } }];
      },
      options,
    ),
  /**
   * Records that another object has the key of a file. Reserves the next generation, unless files of this one are
   * complete: then the next file has the next number.
   */
  recordTakenKey: (runId: string, attempt: RangeAttempt, { file, key }: Pick<StartedFile, 'file' | 'key'>) =>
    step(runId, async (stream, transaction) => {
      const { run } = requireAttempt(stream.state(), attempt);
      await appendTakenKey(stream, { ...rangeStepOf(attempt), file, key });
      if (filesOf(run).count === 0) await reserveNextGeneration(stream, transaction, run);
    }),
  /** Records that another object has the key of the file of rejected rows, and reserves the next generation. */
  recordTakenRejectedKey: (runId: string, generation: number, key: string) =>
    step(runId, async (stream, transaction) => {
      const run = requireGeneration(stream.state(), generation);
      await appendTakenKey(stream, { generation, range: null, file: null, key });
      await reserveNextGeneration(stream, transaction, run);
    }),
  /** Resumes the range's open upload with the parts that exist in S3. */
  resumeUpload: (runId: string, attempt: RangeAttempt, key: string, partNumbers: readonly number[]) =>
    attemptStep(runId, attempt, `resume:${key}/${attempt.attempt}`, ({ upload }) => {
      const parts = (upload?.parts ?? []).filter((part) => partNumbers.includes(part.part_number));
      return [
        {
          type: 'RunUploadResumed',
          data: {
            ...rangeStepOf(attempt),
            key,
            part_numbers: parts.map((part) => part.part_number),
            rows: parts.reduce((sum, part) => sum + part.rows, 0),
            bytes: parts.reduce((sum, part) => sum + part.bytes, 0),
          },
        },
      ];
    }),
  /** Records a part before it is sent. Part numbers cannot be reused, so that no part is ever replaced. */
  planPart: async (runId: string, attempt: RangeAttempt, key: string, part: PlannedPart): Promise<void> => {
    await attemptStep(runId, attempt, `part:${key}/${part.part_number}`, ({ upload }, run) => {
      if (upload?.key !== key || part.part_number <= upload.highest_part_number)
        throw new GenerationSuperseded(`Part ${part.part_number} of ${key} was already planned.`);
      const data = { ...rangeStepOf(attempt), key, part: recordedPart(run, part) };
      return [{ type: 'RunPartPlanned', data }];
    });
  },
  /** Returns the run if `attempt` is the latest. */
  requireAttempt: (runId: string, attempt: RangeAttempt) => attemptStep(runId, attempt, 'checked', () => []),
  /** Records a complete file. */
  recordFile: (runId: string, attempt: RangeAttempt, file: CompletedFile, more: FileOptions = {}) =>
    step(runId, fileStep(runId, attempt, file, more)),
  /** Records that the files contain every row of the range. */
  finishRange: (runId: string, attempt: RangeAttempt) =>
    attemptStep(runId, attempt, `range:${attempt.range}`, ({ finished }) =>
      finished ? [] : [{ type: 'RunRangeFinished', data: rangeStepOf(attempt) }],
    ),
  /** Records the file of the generation's rejected rows before it is written. Idempotent. */
  planRejectedFile: (runId: string, generation: number, file: ExportedFile) =>
    generationStep(runId, generation, 'rejected', (run) =>
      run.rejected_file ? [] : [{ type: 'RunRejectedFilePlanned', data: { generation, file } }],
    ),
});

interface FileOptions {
  /** Whether with it the files contain every row of the range. */
  readonly finishesRange?: boolean;
  /** Of the export's log. */
  readonly line?: string;
}

/** The step that records a complete file. */
export const fileStep =
  (
    runId: string,
    attempt: RangeAttempt,
    file: CompletedFile,
    { finishesRange = false, line }: FileOptions = {},
  ): DeferredStep =>
  async (stream, { later }) => {
    const { run } = requireAttempt(requireGeneration(stream.state(), attempt.generation), attempt);
    await stream.append(`generation:${attempt.generation}/file:${file.key}`, [
      decideFile(run, { ...rangeStepOf(attempt), file }, { finishesRange }),
    ]);
    if (line !== undefined) later(logLineWrite({ ...logIdsOf(run, runId), level: 'INFO', message: line }));
  };

/** Appends that a key is taken. */
const appendTakenKey = (stream: RunStream, taken: RunEventData<'RunKeyTaken'>) =>
  stream.append(`taken:${taken.generation}/${taken.key}`, [{ type: 'RunKeyTaken', data: taken }]);
