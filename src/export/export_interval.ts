/**
 * The way of an interval, from rows in PostgreSQL to a manifest in the bucket. The workflow `batchExportRun` calls the
 * steps in this order. Each is an activity, which may be repeated or killed anywhere:
 *
 * 1. `count.ts` waits until no open transaction can add rows to the interval, counts its rows, and splits a large interval
 *    into ranges of keys.
 * 2. `check_replacement.ts` checks that the source still has the rows of the manifest that the run would replace.
 * 3. `RangeExport` moves the rows of one range to files. Workers export the ranges of an interval at the same time.
 * 4. `finishRanges` writes the file of rejected rows and compares the files with a fresh fingerprint of the source.
 *    If they differ, the run goes back to step 3 with the next generation.
 * 5. `publish.ts` writes the manifest, which makes the files visible, and completes the run.
 *
 * In step 3, the journal is always ahead of the bucket: what may exist in the bucket is recorded before it is sent, with a
 * fencing token (generation, range, attempt). The journal rejects the token of an attempt that a newer one has replaced, and
 * keys and part numbers are used once. So an attempt can stop anywhere, and a zombie can change nothing. In order:
 *
 * 1. _Start._ The attempt gets its number, which makes older tokens invalid.
 * 2. _Resume._ `file_writer.ts` compares the parts that the journal planned with those in the bucket. The attempt continues after
 *    the last confirmed part, inside a block if that part cuts one. Else the file starts over under an unused key.
 * 3. _Move._ The source reads pages, encoder threads turn their blocks into bytes, and `file_writer.ts` joins these to
 *    parts: each is planned in the journal, then sent. The upload is created with the first part, under a key that is free.
 * 4. _Complete a file._ Once all parts have arrived, the journal confirms the token, the upload is completed, and the file
 *    recorded. The next file follows when one is full.
 * 5. _Finish the range_ after its last row, or stop after as many parts as one execution may send: the next one resumes.
 */

import { randomUUID } from 'node:crypto';
import { bounds, boundText } from '../config/bounds.ts';
import { DestinationError, type FileUpload, type NewFile } from '../destination/destination.ts';
import type { FileIdentity } from '../destination/keys.ts';
import {
  type CompletedFile,
  countFewerRows,
  type ExportRange,
  type OpenUpload,
  type SortKey,
} from '../domain/exported_files.ts';
import {
  emptyFingerprint,
  type Fingerprint,
  fingerprintHashOf,
  haveSameRows,
  rowsOfFingerprint,
} from '../domain/fingerprint.ts';
import { attemptOf, rangeOf } from '../domain/run.ts';
import {
  type ExistingRun,
  exportedFingerprint,
  filesOf,
  isActiveStatus,
  type RangeAttempt,
  type RunStatus,
  sourceBefore,
} from '../domain/run_state.ts';
import { encodeBlocks, joinEncodedBlocks, type ReservedBlock } from '../encoding/encode_blocks.ts';
import type { FileEncoder } from '../encoding/encoder.ts';
import type { MemoryReservation } from '../encoding/memory.ts';
import { classifyError } from '../failures/classify_error.ts';
import {
  createStageClock,
  type ExportCall,
  formatInterval,
  intervalOf,
  markOf,
  noEncoder,
  type OpenedCall,
  rowRangeOf,
  type StageClock,
  withPermit,
} from './export_context.ts';
import { publishOpened } from './publish.ts';
import {
  type BuiltPart,
  completeFile,
  createFileWriter,
  type FileWriter,
  inspectUpload,
  readCutBlock,
  type ResumedFile,
  summarizeParts,
} from './file_writer.ts';
import {
  collectRejectedLines,
  type RejectedLines,
  TooManyRejectedRows,
  writeRejectedFile,
} from './rejected.ts';

/** How long an attempt that has failed waits until its upload is aborted. */
const abortTimeoutMs = 5_000;

/** Statuses after which nothing resumes the run's upload. After the others, a retry or the continued run may. */
const finalStatuses: readonly RunStatus[] = ['Cancelled', 'Failed', 'Terminated'];

/** The interval needs more files than a manifest may list. */
class TooManyFiles extends Error {
  override readonly name = 'TooManyFiles';
}

/** @throws TooManyFiles when a run has as many files as it may have, and needs another */
function requireRoom(run: ExistingRun): void {
  if (filesOf(run).count < bounds.manifestFiles.max) return;
  throw new TooManyFiles(
    `The interval needs more than ${boundText(bounds.manifestFiles)} files. Raise max_file_size_mb of the destination, or choose a shorter interval.`,
  );
}

/** One attempt at exporting one range of a run's interval: it owns the run, the fencing token, the upload and the progress. */
class RangeExport {
  readonly #call: OpenedCall;
  readonly #position: number;
  readonly #encoder: FileEncoder;
  /** The rejected rows of the interval; null if this attempt does not read all of them. */
  #rejected: RejectedLines | null = null;
  /** The run after the last step that this attempt recorded. */
  #run: ExistingRun;

  private constructor(call: OpenedCall, position: number, started: ExistingRun) {
    const { source, encoders } = call.dependencies;
    this.#call = call;
    this.#position = position;
    this.#run = started;
    const columns = source.columns(started.spec.model, call.selection);
    this.#encoder = encoders.fileEncoder(call.destination.encoding, columns);
  }

  /**
   * Exports a range, counted from 0.
   * @returns the run, whether every row of the range is in its files, and the rejected rows of the interval if all of them
   * are known; the caller closes these
   */
  static async run(
    call: OpenedCall,
    position: number,
    existing: ExistingRun,
  ): Promise<{
    readonly run: ExistingRun;
    readonly done: boolean;
    readonly rejected: RejectedLines | null;
  }> {
    // A run that adds late rows to a manifest has one range, whatever the workflow was told before it was checked.
    if (existing.ranges[position]?.finished ?? true) return { run: existing, done: true, rejected: null };
    const started = await call.dependencies.recorder.startExport(call.runId, position, {
      reserves: true,
    });
    const range = new RangeExport(call, position, started);
    const resumed = await range.#resume();
    await range.#logStart(resumed);
    const done = await range.#moveRows(resumed);
    return { run: range.#run, done, rejected: range.#rejected };
  }

  /** The fencing token of every step. */
  get #token(): RangeAttempt {
    return attemptOf(this.#run, this.#position);
  }

  /** The range as the run has it now. */
  get #range(): ExportRange {
    return rangeOf(this.#run, this.#position);
  }

  /** Whether the file names of the range have numbers; the only file of an interval has none. */
  get #isNumbered(): boolean {
    return this.#call.destination.maxFileBytes !== null || this.#run.ranges.length > 1;
  }

  /**
   * Finds out what the previous attempt left of the range. A file whose object exists is recorded; an upload that can be
   * resumed is. Otherwise the file starts over under the next file number or, if it is the only file and has none, under the
   * interval's next generation: no key is ever written twice. Everything starts over when another encoder wrote what exists.
   * @returns the file to resume; null to start a new one
   */
  async #resume(): Promise<ResumedFile | null> {
    const { dependencies, runId, destination, signal } = this.#call;
    const { generation, encoder, spec } = this.#run;
    const { upload, files, attempt } = this.#range;
    const hasSameEncoder = encoder === null || encoder === this.#encoder.identity;
    const canContinue = generation > 0 && hasSameEncoder;
    if (canContinue) {
      const resumed = upload ? await this.#resumeUpload(upload) : null;
      // The previous attempt may have ended after it created an upload and before it recorded it.
      if (!upload && attempt > 1)
        await destination.abortOrphanedUploads(spec, this.#nextFile(), this.#encoder.extension, signal);
      if (resumed !== 'start_over') return resumed;
    }
    if (upload) await this.#abortUpload(upload);
    signal.throwIfAborted();
    if (!canContinue || (!this.#isNumbered && files.count === 0))
      this.#run = await dependencies.recorder.reserveGeneration(runId, this.#token);
    return null;
  }

  /** @returns the file to resume; null when the file is complete */
  async #resumeUpload(open: OpenUpload): Promise<ResumedFile | 'start_over' | null> {
    const { dependencies, runId, destination, selection, signal } = this.#call;
    const { recorder, source } = dependencies;
    const upload = await inspectUpload(destination, open, signal);
    switch (upload.state) {
      case 'completed':
        await this.#recordFile({ ...summarizeParts(open.key, open.parts), expires_at: upload.expires_at });
        return null;
      case 'all_parts_uploaded':
        try {
          await recorder.requireAttempt(runId, this.#token);
          await this.#recordFile(await completeFile(upload.upload, open.parts, upload.etags, signal));
          return null;
        } catch (error) {
          if (error instanceof DestinationError && error.type === 'UploadNotFound') return 'start_over';
          throw error;
        }
      case 'resumable': {
        if (!this.#encoder.resumable) return 'start_over';
        const rows = rowRangeOf(this.#run.spec, selection);
        const cutBlock = await readCutBlock({ source, encoder: this.#encoder, rows, signal }, upload.parts);
        if (cutBlock === 'changed') return 'start_over';
        const numbers = upload.parts.map(({ part_number }) => part_number);
        this.#run = await recorder.resumeUpload(runId, this.#token, open.key, numbers);
        return { ...upload, cutBlock };
      }
      case 'not_listable':
        await this.#log(
          'WARNING',
          'The uploaded parts could not be listed, so the file is exported from the start. Grant the credentials s3:ListMultipartUploadParts to resume files.',
        );
        return 'start_over';
      case 'missing':
        return 'start_over';
    }
  }

  async #logStart(resumed: ResumedFile | null): Promise<void> {
    const { destination, progress } = this.#call;
    const { ranges } = this.#run;
    // The mark of a new key is not known yet.
    const key = resumed?.upload.key ?? this.#nextKey('…');
    progress.rows = [this.#range.files, ...(resumed?.parts ?? [])].reduce((sum, { rows }) => sum + rows, 0);
    const range = ranges.length > 1 ? `range ${this.#position + 1} of ${ranges.length} of ` : '';
    const interval = formatInterval(this.#run);
    await this.#log(
      'INFO',
      progress.rows > 0
        ? `Resuming ${range}${interval} after ${progress.rows} rows, in ${destination.nameOf(key)}.`
        : `Exporting ${range}${interval} to ${destination.nameOf(key)}.`,
    );
  }

  /**
   * Reads, encodes and sends the rows of the range that its files and the parts of a resumed file do not hold yet.
   * @returns whether all rows were sent. They were not when this execution has sent its share of parts; a file that cannot
   * be resumed is finished first, or the next execution would send its parts again.
   */
  async #moveRows(resumed: ResumedFile | null): Promise<boolean> {
    const { dependencies, runId, destination, progress, signal } = this.#call;
    const { recorder, settings } = dependencies;
    const memory = dependencies.memory.openReservation();
    const stages = createStageClock(dependencies.onStage);
    const failed = new AbortController();
    const sending = AbortSignal.any([signal, failed.signal]);
    const { after, files } = this.#range;
    const fileAfter = files.last ?? after;
    const openWriter = (file: ResumedFile | null, from: SortKey | null): FileWriter =>
      this.#openWriter(file, from, memory, sending);
    let writer = resumed && openWriter(resumed, lastKeyOf(resumed) ?? fileAfter);
    let partsOfClosedFiles = 0;
    let rejected = rejectedRowsOf(this.#run);
    if (rejected === 0 && this.#run.ranges.length === 1)
      this.#rejected = collectRejectedLines(dependencies, this.#run);

    const finishFile = async (open: FileWriter, finishesRange = false): Promise<void> => {
      const file = await stages.measure('upload', () => open.finish());
      open.close();
      partsOfClosedFiles += open.partsPlanned();
      writer = null;
      if (!file) return;
      const line = `Wrote ${file.rows} rows (${file.bytes} bytes) to ${destination.nameOf(file.key)}.`;
      await this.#recordFile(file, { finishesRange, line });
    };

    try {
      let lastKey = fileAfter;
      for await (const encoded of this.#readBlocks(resumed, memory, stages)) {
        const { block } = encoded;
        if (writer?.isFull(destination.maxFileBytes)) {
          await finishFile(writer);
          if (partsOfClosedFiles >= settings.EXPORTD_PARTS_PER_EXECUTION) return false;
        }
        if (!writer) requireRoom(this.#run);
        writer ??= openWriter(null, lastKey);
        lastKey = block.last;
        const open = writer;
        await stages.measure('upload', () => open.append(encoded));
        progress.rows += block.rows;
        rejected += block.rejected.length;
        if (rejected > settings.EXPORTD_MAX_REJECTED_ROWS)
          throw new TooManyRejectedRows(settings.EXPORTD_MAX_REJECTED_ROWS, block.rejected.at(-1));
        this.#rejected?.add(block);
        if (partsOfClosedFiles + writer.partsPlanned() < settings.EXPORTD_PARTS_PER_EXECUTION) continue;
        if (!(await writer.canBeResumed())) continue;
        await writer.settled();
        this.#run = await recorder.requireAttempt(runId, this.#token);
        return false;
      }
      if (writer) await finishFile(writer, true);
      if (resumed && this.#range.files.count === files.count) await this.#abortUpload(resumed.upload);
      if (!this.#range.finished) this.#run = await recorder.finishRange(runId, this.#token);
      return true;
    } catch (error) {
      this.#rejected?.close();
      failed.abort(error);
      await writer?.settled().catch(() => undefined);
      await this.#abortAfterPermanentFailure(error);
      throw error;
    } finally {
      writer?.close();
      memory.close();
      stages.report();
    }
  }

  /** The encoded blocks that follow what files and parts hold; first the block in which a file is resumed. */
  async *#readBlocks(
    resumed: ResumedFile | null,
    memory: MemoryReservation,
    { add: onWait }: Pick<StageClock, 'add'>,
  ): AsyncGenerator<ReservedBlock> {
    const { dependencies, selection, signal } = this.#call;
    const { source, encoders, settings } = dependencies;
    const { blockBytes, grouping } = this.#encoder;
    const { after, until, files } = this.#range;
    const cutBlock = resumed?.cutBlock;
    const keys = { after: cutBlock?.last ?? lastKeyOf(resumed) ?? files.last ?? after, until };
    const blocks = source.heldBlocks(rowRangeOf(this.#run.spec, selection), keys, {
      blockBytes,
      signal,
      memory,
      threads: encoders.pageThreads,
    });
    // A page for each thread: the blocks of a page are encoded by the thread that read it.
    const blocksPerPage = Math.ceil(settings.EXPORTD_SOURCE_PAGE_SIZE / blockBytes);
    const blocksInFlight = settings.EXPORTD_ENCODER_THREADS * blocksPerPage;
    const encoding = { encoder: grouping ?? this.#encoder, memory, blocksInFlight, onWait };
    const encoded = encodeBlocks(blocks, encoding);
    if (cutBlock) yield { block: cutBlock, release: () => undefined };
    yield* grouping ? joinEncodedBlocks(encoded, grouping, memory) : encoded;
  }

  #openWriter(
    resumed: ResumedFile | null,
    after: SortKey | null,
    memory: MemoryReservation,
    signal: AbortSignal,
  ): FileWriter {
    const { dependencies, runId, destination } = this.#call;
    const { recorder } = dependencies;
    const { spec } = this.#run;
    return createFileWriter({
      destination,
      encoder: this.#encoder,
      resumed,
      after,
      memory,
      signal,
      emptyFingerprint: emptyFingerprint(intervalOf(spec), fingerprintHashOf(spec.model)),
      startUpload: () => this.#startUpload(signal),
      writeWholeFile: (whole) => this.#writeWholeFile(whole, signal),
      planPart: (key, part) => recorder.planPart(runId, this.#token, key, part),
      requireAttempt: () => recorder.requireAttempt(runId, this.#token),
    });
  }

  /** Creates the upload of the range's next file under a key that is not taken, and records it. */
  async #startUpload(signal: AbortSignal): Promise<FileUpload> {
    const { dependencies, runId, destination } = this.#call;
    for (;;) {
      const file = this.#newFile();
      if (await destination.isTaken(file.key, signal)) {
        await this.#skipTakenKey(file.key);
        continue;
      }
      const upload = await destination.createUpload(file, signal);
      try {
        this.#run = await dependencies.recorder.recordUpload(runId, this.#token, {
          file: this.#range.next_file,
          key: upload.key,
          upload_id: upload.upload_id,
          upload_token: upload.upload_token,
          part_bytes: upload.part_bytes,
          encoder: this.#encoder.identity,
        });
      } catch (error) {
        // An upload that the journal does not know would never be aborted otherwise.
        await this.#abortUpload(upload);
        throw error;
      }
      return upload;
    }
  }

  /**
   * Writes the range's next file in one request. The journal records key, token and part before that: the attempt that finds the
   * object later knows what is in it. The store refuses a key that is taken.
   */
  async #writeWholeFile({ part, body }: BuiltPart, signal: AbortSignal): Promise<CompletedFile> {
    const { dependencies, runId, destination } = this.#call;
    for (;;) {
      const file = this.#newFile();
      const { key, upload_token } = file;
      const planned = {
        file: this.#range.next_file,
        key,
        upload_token,
        encoder: this.#encoder.identity,
      };
      this.#run = await dependencies.recorder.planWholeFile(runId, this.#token, planned, part);
      const written = await destination.putFile(file, body, signal);
      if (written) return { ...summarizeParts(key, [part]), ...written };
      await this.#skipTakenKey(key);
    }
  }

  /** Records that another object has a key. The next file has the next generation, or the next number. */
  async #skipTakenKey(key: string): Promise<void> {
    const { dependencies, runId, destination } = this.#call;
    const { generation } = this.#run;
    const { next_file, upload } = this.#range;
    // A file that was planned has used its number.
    const file = upload?.key === key ? next_file - 1 : next_file;
    this.#run = await dependencies.recorder.recordTakenKey(runId, this.#token, { file, key });
    const next =
      this.#run.generation === generation
        ? 'under the next file number'
        : `as generation ${this.#run.generation}`;
    await this.#log(
      'WARNING',
      `The key ${destination.nameOf(key)} is taken by an object that this run did not write. It is kept, and the file is exported ${next}.`,
    );
  }

  /** The range's next file, with a new token. */
  #newFile(): NewFile {
    const upload_token = randomUUID();
    const { contentType, resumable } = this.#encoder;
    return { key: this.#nextKey(upload_token), contentType, upload_token, resumable };
  }

  /** The key of the range's next file. It contains the start of the token where the store has no conditional writes. */
  #nextKey(token: string): string {
    const { destination } = this.#call;
    const file = { ...this.#nextFile(), mark: markOf(destination, token) };
    return destination.fileKey(this.#run.spec, file, this.#encoder.extension);
  }

  #nextFile(): Omit<FileIdentity, 'mark'> {
    const { generation, ranges } = this.#run;
    const { next_file } = this.#range;
    return {
      generation,
      range: ranges.length > 1 ? this.#position : null,
      // Without a maximum file size there is a second file only if the first has the maximum number of parts.
      file: this.#isNumbered || next_file > 0 ? next_file : null,
    };
  }

  async #recordFile(file: CompletedFile, more?: { finishesRange: boolean; line: string }): Promise<void> {
    const { dependencies, runId } = this.#call;
    this.#run = await dependencies.recorder.recordFile(runId, this.#token, file, more);
  }

  /**
   * Aborts the upload of the range if nothing will resume it: the run has ended, or the attempt failed with a permanent
   * error. After a transient error the next attempt resumes it. A superseded attempt leaves it alone, since it belongs to
   * the newer one.
   */
  async #abortAfterPermanentFailure(error: unknown): Promise<void> {
    const { dependencies, runId, signal } = this.#call;
    const { generation, range, attempt } = this.#token;
    const run = await dependencies.recorder.read(runId).catch(() => undefined);
    const found = run?.ranges[range];
    if (!run || !found?.upload) return;
    const isLatest = isActiveStatus(run.status) && run.generation === generation && found.attempt === attempt;
    // An aborted signal proves nothing: a user's cancellation is in the run's status, but a failed sibling range cancels too.
    const isPermanent = isLatest && !signal.aborted && classifyError(error).permanent;
    if (finalStatuses.includes(run.status) || isPermanent) await this.#abortUpload(found.upload);
  }

  /**
   * Aborts an upload; a file that is written in one request has none. Errors are ignored, since the maintenance aborts what
   * the journal still lists.
   */
  async #abortUpload({ key, upload_id }: Pick<OpenUpload, 'key' | 'upload_id'>): Promise<void> {
    if (upload_id === null) return;
    const signal = AbortSignal.timeout(abortTimeoutMs);
    await this.#call.destination.abortUpload(key, upload_id, signal).catch(() => undefined);
  }

  async #log(level: 'INFO' | 'WARNING', message: string): Promise<void> {
    const { dependencies, runId } = this.#call;
    await dependencies.recorder.log(this.#run, runId, level, message);
  }
}

/** The key of the last row in a resumed file; null when no block ends in its parts. */
const lastKeyOf = (resumed: ResumedFile | null): SortKey | null =>
  resumed?.parts.findLast(({ last }) => last !== null)?.last ?? null;

const rejectedRowsOf = (run: ExistingRun): number =>
  [filesOf(run), ...run.ranges.flatMap(({ upload }) => upload?.parts ?? [])].reduce(
    (sum, { rejected }) => sum + rejected,
    0,
  );

/** How often a run exports its interval again because of late rows. After that comparisons find them. */
const maxLateGenerations = 2;

/** The result of an export activity, which is stored in the workflow's history: numbers only. */
export interface ExportOutcome {
  /** False when rows remain: for the next execution, or because the interval is exported again. */
  readonly finished: boolean;
  readonly generation: number;
  readonly rows: number;
  readonly bytes: number;
  readonly source_rows: number;
}

/**
 * One attempt at exporting an interval that is not split. It resumes where the previous attempt stopped and ends when a
 * fresh count matches. Once the export is finished, it returns the recorded outcome.
 * @param publishes whether it publishes the run in the same destination once the export is finished
 */
export async function exportInterval(
  call: ExportCall,
  { publishes = false }: { readonly publishes?: boolean } = {},
): Promise<ExportOutcome> {
  return withOpenedRun(call, async (opened, existing) => {
    let run = existing;
    while (!run.finished) {
      const { rejected, ...exported } = await RangeExport.run(opened, 0, run);
      try {
        if (!exported.done) return exportOutcomeOf(exported.run, false);
        run = await finish(opened, exported.run, rejected);
      } finally {
        rejected?.close();
      }
    }
    if (publishes) await publishOpened(opened, run);
    return exportOutcomeOf(run, true);
  });
}

/** One attempt at one range of a split interval; `finished` is true when all its rows are in files. */
export async function exportOneRange(call: ExportCall, position: number): Promise<ExportOutcome> {
  return withOpenedRun(call, async (opened, existing) => {
    if (existing.finished) return exportOutcomeOf(existing, true);
    const { run, done } = await RangeExport.run(opened, position, existing);
    return exportOutcomeOf(run, done);
  });
}

/** Finishes a split interval; `finished` is false when its ranges must be exported again. */
export async function finishRanges(call: ExportCall): Promise<ExportOutcome> {
  return withOpenedRun(call, async (opened, existing) => {
    const run = existing.finished ? existing : await finish(opened, existing, null);
    return exportOutcomeOf(run, run.finished !== null);
  });
}

const withOpenedRun = (
  call: ExportCall,
  work: (opened: OpenedCall, existing: ExistingRun) => Promise<ExportOutcome>,
): Promise<ExportOutcome> =>
  withPermit(call, async (existing, destination) => {
    const { recorder, readSelection } = call.dependencies;
    const only = await recorder.readLateKeys(existing);
    const selection = { ...(await readSelection(existing.spec)), ...(only && { only }) };
    return work({ ...call, destination, selection }, existing);
  });

/** Finishes the export, which waits for a fresh fingerprint of the source. */
async function finish(
  call: OpenedCall,
  run: ExistingRun,
  rejectedLines: RejectedLines | null,
): Promise<ExistingRun> {
  const stages = createStageClock(call.dependencies.onStage);
  try {
    return await stages.measure('read', () => finishGeneration(call, run, rejectedLines));
  } finally {
    stages.report();
  }
}

/**
 * Finishes the export of an interval whose ranges are in files: writes the file of rejected rows and compares the exported
 * rows with those that the source has now. If they differ, the interval is exported again under the next generation, and
 * the returned run is not finished.
 */
async function finishGeneration(
  call: OpenedCall,
  run: ExistingRun,
  rejectedLines: RejectedLines | null,
): Promise<ExistingRun> {
  const { dependencies, runId, selection, signal } = call;
  const { recorder, source } = dependencies;
  // Resuming one of them may have started a new generation.
  if (run.ranges.some(({ finished }) => !finished)) return run;
  const { rejected } = filesOf(run);
  if (rejected > 0 && run.replacement?.base?.rejected_file)
    throw new TooManyRejectedRows(rejected, undefined);
  const counted = rejected > 0 ? await writeRejectedFile(call, run, rejectedLines) : run;
  if (counted.generation !== run.generation) return counted;
  const now = await source.fingerprint(rowRangeOf(run.spec, selection), signal);
  const exported = exportedFingerprint(counted);
  const expected = now.all_events ? sourceBefore(counted) : exported;
  if (!(expected && hasExpectedRows(run, expected, now))) {
    const again = run.late_generations < maxLateGenerations;
    await recorder.log(
      run,
      runId,
      'WARNING',
      `${describeDifference(expected, now, formatInterval(run))}: rows arrived late or were deleted. ${again ? 'Exporting the interval again.' : 'A later comparison checks them again.'}`,
    );
    if (again) return recorder.reserveForLateRows(runId, run.generation, now);
  }
  const { only, ...selected } = selection;
  const all = only ? await source.fingerprint(rowRangeOf(run.spec, selected), signal) : now;
  return recorder.finishExport(runId, run.generation, {
    // How many are selected changes with their persons, so the rows that were read are reported.
    source_rows: rowsOfFingerprint(all.all_events ? exported : all),
    fingerprint: all,
    encoder: run.encoder ?? noEncoder,
  });
}

/**
 * Whether the source has the rows that were read. A person that changed meanwhile has moved to a later interval, so only more
 * persons are a difference; later comparisons find one of several that came and went.
 */
const hasExpectedRows = ({ spec }: ExistingRun, expected: Fingerprint, now: Fingerprint): boolean =>
  spec.model === 'persons' ? countFewerRows(now, expected) === 0 : haveSameRows(expected, now);

function describeDifference(expected: Fingerprint | null, now: Fingerprint, interval: string): string {
  const [before, after] = [expected ? rowsOfFingerprint(expected) : 0, rowsOfFingerprint(now)];
  if (now.all_events)
    return `Project has ${after} events in the source for ${interval}, ${before} when reading started`;
  return before === after
    ? `Source has ${after} rows for ${interval}, and not all of them are the ${before} that were exported`
    : `Source has ${after} rows for ${interval}, ${before} were exported`;
}

/** What the files and parts of a run have. */
export function exportOutcomeOf(run: ExistingRun, finished: boolean): ExportOutcome {
  const total = (value: (part: { rows: number; bytes: number }) => number) =>
    [filesOf(run), ...run.ranges.flatMap(({ upload }) => upload?.parts ?? [])].reduce(
      (sum, part) => sum + value(part),
      0,
    );
  return {
    finished,
    generation: run.generation,
    rows: total(({ rows }) => rows),
    bytes: total(({ bytes }) => bytes),
    source_rows: run.finished?.source_rows ?? 0,
  };
}
