import {
  type DeferredStep,
  type DeferredSteps,
  firstAttemptStep,
  isUntouched,
  type PreparedRun,
} from '../decisions/deferred_steps.ts';
import { fileStep } from '../decisions/record_files.ts';
import type { RunRecorder } from '../decisions/run_recorder.ts';
import type { CompletedFile, ExportRange, OpenUpload, PlannedPart } from '../domain/exported_files.ts';
import { attemptOf, rangeOf } from '../domain/run.ts';
import { type ExistingRun, isActiveStatus, type RangeAttempt, type RunStatus } from '../domain/run_state.ts';
import type { LogLevel } from '../journal/journal.ts';

type AttemptRecorder = Pick<
  RunRecorder,
  | 'startExport'
  | 'reserveGeneration'
  | 'recordUpload'
  | 'planWholeFile'
  | 'resumeUpload'
  | 'planPart'
  | 'requireAttempt'
  | 'recordTakenKey'
  | 'recordFile'
  | 'finishRange'
  | 'recordDeferred'
  | 'read'
  | 'log'
>;

/** Rows that one file takes, and that are read and sent within a moment. */
const fewRows = 10_000;

/** A file of the range that starts, and the encoder of its bytes. */
interface StartedFile extends Pick<OpenUpload, 'key' | 'upload_token'> {
  readonly encoder: string;
}

/**
 * One attempt at a range of a run. It holds the fencing token and the run after the last step that it recorded, so that each
 * step names only what happened. Every step throws RunEnded once the run has ended, and GenerationSuperseded once a newer
 * attempt has started.
 */
export class RunAttempt {
  readonly #recorder: AttemptRecorder;
  readonly #runId: string;
  /** The index of the range, from 0. */
  readonly position: number;
  #run: ExistingRun;
  /** Steps that are recorded with the next one. Those after the last row are those of the caller. */
  readonly #deferred: DeferredSteps;
  /** Whether it is the first attempt at few rows, which records several steps together. */
  #isSmall = false;

  private constructor(
    recorder: AttemptRecorder,
    runId: string,
    position: number,
    started: ExistingRun,
    deferred: DeferredSteps,
  ) {
    this.#deferred = deferred;
    this.#recorder = recorder;
    this.#runId = runId;
    this.position = position;
    this.#run = started;
  }

  /**
   * Starts an attempt, which makes the tokens of earlier ones invalid. A run without a generation gets one. The first attempt at few
   * rows is recorded with the file that it plans: before that it only reads.
   * @param prepared the run and what it finds of others, as they were read
   */
  static async start(
    recorder: AttemptRecorder,
    runId: string,
    position: number,
    { run, others, deferred }: PreparedRun,
  ): Promise<RunAttempt> {
    const isSmall = isUntouched(run) && (run.records_total_count ?? Infinity) <= fewRows;
    const started = isSmall ? run : await recorder.startExport(runId, position, { reserves: true, others });
    const attempt = new RunAttempt(recorder, runId, position, started, deferred);
    attempt.#isSmall = isSmall;
    if (isSmall) await attempt.#defer(firstAttemptStep(others));
    return attempt;
  }

  async #defer(step: DeferredStep): Promise<void> {
    this.#run = await this.#deferred.add(this.#runId, this.#run, step);
  }

  /** Records what was deferred. */
  async recordDeferred(): Promise<void> {
    if (this.#deferred.isEmpty) return;
    this.#run = await this.#recorder.recordDeferred(this.#runId, this.#deferred.take());
  }

  /** The run after the last recorded step. */
  get run(): ExistingRun {
    return this.#run;
  }

  /** The range as the run has it now. */
  get range(): ExportRange {
    return rangeOf(this.#run, this.position);
  }

  get #token(): RangeAttempt {
    return attemptOf(this.#run, this.position);
  }

  /** Reserves the interval's next generation, of which nothing is exported. */
  async reserveGeneration(): Promise<void> {
    await this.recordDeferred();
    this.#run = await this.#recorder.reserveGeneration(this.#runId, this.#token);
  }

  /** Records the upload of the range's next file. `line`: of the export's log; null for none. */
  async uploadCreated(
    upload: StartedFile & { readonly upload_id: string; readonly part_bytes: number | null },
    line: string | null,
  ): Promise<void> {
    await this.recordDeferred();
    const file = this.range.next_file;
    this.#run = await this.#recorder.recordUpload(this.#runId, this.#token, { file, ...upload }, { line });
  }

  /** Records that the upload continues with these parts. */
  async uploadResumed(key: string, partNumbers: readonly number[]): Promise<void> {
    await this.recordDeferred();
    this.#run = await this.#recorder.resumeUpload(this.#runId, this.#token, key, partNumbers);
  }

  /** Records the range's next file of one part before it is written. `line`: as in `uploadCreated`. */
  async wholeFilePlanned(started: StartedFile, part: PlannedPart, line: string | null): Promise<void> {
    const file = { file: this.range.next_file, ...started };
    const before = this.#deferred.take();
    this.#run = await this.#recorder.planWholeFile(this.#runId, this.#token, file, part, { line, before });
  }

  /** Records a part before it is sent. Parts are planned while others are sent, so `run` does not have them. */
  partPlanned(key: string, part: PlannedPart): Promise<void> {
    return this.#recorder.planPart(this.#runId, this.#token, key, part);
  }

  /** Records that another object has the key of the file. The next one has the next generation, or the next number. */
  async keyTaken(key: string): Promise<void> {
    await this.recordDeferred();
    const { next_file, upload } = this.range;
    // A file that was planned has used its number.
    const file = upload?.key === key ? next_file - 1 : next_file;
    this.#run = await this.#recorder.recordTakenKey(this.#runId, this.#token, { file, key });
  }

  /**
   * Records a complete file. `finishesRange`: the range has all its rows. `line`: of the export's log. The only file of few rows is
   * recorded with the end of the export: an attempt that finds it planned finds it in the bucket.
   */
  async fileCompleted(file: CompletedFile, more?: { finishesRange: boolean; line: string }): Promise<void> {
    const isOnly = more?.finishesRange === true && this.range.files.count === 0;
    if (this.#isSmall && isOnly) return this.#defer(fileStep(this.#runId, this.#token, file, more));
    await this.recordDeferred();
    this.#run = await this.#recorder.recordFile(this.#runId, this.#token, file, more);
  }

  /** Records that the files have every row of the range. */
  async rangeFinished(): Promise<void> {
    await this.recordDeferred();
    this.#run = await this.#recorder.finishRange(this.#runId, this.#token);
  }

  /** Reads the run again; throws if the attempt is no longer the latest. */
  async confirm(): Promise<ExistingRun> {
    await this.recordDeferred();
    this.#run = await this.#recorder.requireAttempt(this.#runId, this.#token);
    return this.#run;
  }

  /** Reads what became of the range: the status of the run, its open upload, and whether this is still the latest attempt. */
  async inspect(): Promise<{
    readonly status: RunStatus;
    readonly upload: OpenUpload | null;
    readonly isLatest: boolean;
  }> {
    const { generation, attempt } = this.#token;
    const run = await this.#recorder.read(this.#runId);
    const { status } = run;
    const range = run.ranges[this.position];
    const isLatest = isActiveStatus(status) && run.generation === generation && range?.attempt === attempt;
    return { status, upload: range?.upload ?? null, isLatest };
  }

  /** Writes a line to the export's log. */
  log(level: LogLevel, message: string): Promise<void> {
    return this.#recorder.log(this.#run, this.#runId, level, message);
  }
}
