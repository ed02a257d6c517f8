/**
 * Moves the rows of one range of an interval to files.
 *
 * The journal is always ahead of the bucket: what may exist in the bucket is recorded before it is sent, with a
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
import type { PreparedRun } from '../decisions/deferred_steps.ts';
import { DestinationError, type FileUpload, type NewFile } from '../destination/destination.ts';
import type { FileIdentity } from '../destination/keys.ts';
import type { CompletedFile, OpenUpload } from '../domain/exported_files.ts';
import type { SortKey } from '../domain/sort_key.ts';
import { emptyFingerprint, fingerprintHashOf } from '../domain/fingerprint.ts';
import { type ExistingRun, filesOf, type RunStatus } from '../domain/run_state.ts';
import { encodeBlocks, joinEncodedBlocks, type ReservedBlock } from '../encoding/encode_blocks.ts';
import type { FileEncoder } from '../encoding/encoder.ts';
import type { MemoryReservation } from '../encoding/memory.ts';
import { classifyError } from '../failures/classify_error.ts';
import { markOf, type OpenedCall } from './export_context.ts';
import { formatInterval, intervalOf, rowRangeOf } from './run_interval.ts';
import { createStageClock, type StageClock } from './stage_clock.ts';
import { createFileWriter, type FileWriter } from './file_writer.ts';
import { collectRejectedLines, type RejectedLines, TooManyRejectedRows } from './rejected.ts';
import { RunAttempt } from './run_attempt.ts';
import { completeFile, summarizeParts } from './completed_file.ts';
import type { BuiltPart } from './part_builder.ts';
import { inspectUpload, readCutBlock, type ResumedFile } from './resumed_file.ts';

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

/** Exports one range of a run's interval in one attempt. */
export class RangeExport {
  readonly #call: OpenedCall;
  readonly #attempt: RunAttempt;
  readonly #encoder: FileEncoder;
  /** The rejected rows of the interval; null if this attempt does not read all of them. */
  #rejected: RejectedLines | null = null;
  /** The files that this attempt has completed. */
  readonly #written: CompletedFile[] = [];
  /** The line of the export's log that says where the attempt writes, until the first step that records something. */
  #startLine: string | null = null;

  private constructor(call: OpenedCall, attempt: RunAttempt) {
    const { source, encoders } = call.dependencies;
    this.#call = call;
    this.#attempt = attempt;
    const columns = source.columns(attempt.run.spec.model, call.selection);
    this.#encoder = encoders.fileEncoder(call.destination.encoding, columns);
  }

  /**
   * Exports a range, counted from 0.
   * @param found the run as it was read. Its deferred steps, and those that the attempt adds and has not recorded, are recorded by
   * the caller with the next one
   * @returns the run, whether every row of the range is in its files, and the rejected rows of the interval if all of them
   * are known; the caller closes these. `written`: the files of the run's generation; null if this attempt has not written all
   */
  static async run(
    call: OpenedCall,
    position: number,
    found: PreparedRun,
  ): Promise<{
    readonly run: ExistingRun;
    readonly done: boolean;
    readonly rejected: RejectedLines | null;
    readonly written: readonly CompletedFile[] | null;
  }> {
    const { run: existing } = found;
    // A run that adds late rows to a manifest has one range, whatever the workflow was told before it was checked.
    if (existing.ranges[position]?.finished ?? true)
      return { run: existing, done: true, rejected: null, written: null };
    const attempt = await RunAttempt.start(call.dependencies.recorder, call.runId, position, found);
    const range = new RangeExport(call, attempt);
    const resumed = await range.#resume();
    range.#startLine = range.#describeStart(resumed);
    if (resumed) await range.#logStart();
    let done = false;
    try {
      done = await range.#moveRows(resumed);
    } finally {
      await range.#logStart();
    }
    const written = filesOf(attempt.run).count === range.#written.length ? range.#written : null;
    return { run: attempt.run, done, rejected: range.#rejected, written };
  }

  /** Whether the file names of the range have numbers; the only file of an interval has none. */
  get #isNumbered(): boolean {
    return this.#call.destination.maxFileBytes !== null || this.#attempt.run.ranges.length > 1;
  }

  /**
   * Finds out what the previous attempt left of the range. A file whose object exists is recorded; an upload that can be
   * resumed is. Otherwise the file starts over under the next file number or, if it is the only file and has none, under the
   * interval's next generation: no key is ever written twice. Everything starts over when another encoder wrote what exists.
   * @returns the file to resume; null to start a new one
   */
  async #resume(): Promise<ResumedFile | null> {
    const { destination, signal } = this.#call;
    const { generation, encoder, spec } = this.#attempt.run;
    const { upload, files, attempt } = this.#attempt.range;
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
    if (!canContinue || (!this.#isNumbered && files.count === 0)) await this.#attempt.reserveGeneration();
    return null;
  }

  /** @returns the file to resume; null when the file is complete */
  async #resumeUpload(open: OpenUpload): Promise<ResumedFile | 'start_over' | null> {
    const { dependencies, destination, selection, signal } = this.#call;
    const upload = await inspectUpload(destination, open, signal);
    switch (upload.state) {
      case 'completed':
        await this.#attempt.fileCompleted({
          ...summarizeParts(open.key, open.parts),
          expires_at: upload.expires_at,
        });
        return null;
      case 'all_parts_uploaded':
        try {
          await this.#attempt.confirm();
          await this.#attempt.fileCompleted(
            await completeFile(upload.upload, open.parts, upload.etags, signal),
          );
          return null;
        } catch (error) {
          if (error instanceof DestinationError && error.type === 'UploadNotFound') return 'start_over';
          throw error;
        }
      case 'resumable': {
        if (!this.#encoder.resumable) return 'start_over';
        const { source } = dependencies;
        const rows = rowRangeOf(this.#attempt.run.spec, selection);
        const replacesBadValues = this.#call.destination.encoding.on_bad_row === 'reject';
        const reading = { source, encoder: this.#encoder, rows, signal, replacesBadValues };
        const cutBlock = await readCutBlock(reading, upload.parts);
        if (cutBlock === 'changed') return 'start_over';
        const numbers = upload.parts.map(({ part_number }) => part_number);
        await this.#attempt.uploadResumed(open.key, numbers);
        return { ...upload, cutBlock };
      }
      case 'not_listable':
        await this.#attempt.log(
          'WARNING',
          'The uploaded parts could not be listed, so the file is exported from the start. Grant the credentials s3:ListMultipartUploadParts to resume files.',
        );
        return 'start_over';
      case 'missing':
        return 'start_over';
    }
  }

  /** Where the attempt writes, for the export's log. */
  #describeStart(resumed: ResumedFile | null): string {
    const { destination, progress } = this.#call;
    const { position, run } = this.#attempt;
    const { ranges } = run;
    // The mark of a new key is not known yet.
    const key = resumed?.upload.key ?? this.#nextKey('…');
    progress.rows = [this.#attempt.range.files, ...(resumed?.parts ?? [])].reduce(
      (sum, { rows }) => sum + rows,
      0,
    );
    const range = ranges.length > 1 ? `range ${position + 1} of ${ranges.length} of ` : '';
    const interval = formatInterval(run);
    return progress.rows > 0
      ? `Resuming ${range}${interval} after ${progress.rows} rows, in ${destination.nameOf(key)}.`
      : `Exporting ${range}${interval} to ${destination.nameOf(key)}.`;
  }

  #takeStartLine(): string | null {
    const line = this.#startLine;
    this.#startLine = null;
    return line;
  }

  /** Logs the start of an attempt, unless a step that it has recorded did. */
  async #logStart(): Promise<void> {
    const line = this.#takeStartLine();
    if (line !== null) await this.#attempt.log('INFO', line).catch(() => undefined);
  }

  /**
   * Reads, encodes and sends the rows of the range that its files and the parts of a resumed file do not hold yet.
   * @returns whether all rows were sent. They were not when this execution has sent its share of parts; a file that cannot
   * be resumed is finished first, or the next execution would send its parts again.
   */
  async #moveRows(resumed: ResumedFile | null): Promise<boolean> {
    const { dependencies, destination, progress, signal } = this.#call;
    const { settings } = dependencies;
    const memory = dependencies.memory.openReservation();
    const stages = createStageClock(dependencies.onStage);
    const failed = new AbortController();
    const sending = AbortSignal.any([signal, failed.signal]);
    const { after, files } = this.#attempt.range;
    const fileAfter = files.last ?? after;
    const openWriter = (file: ResumedFile | null, from: SortKey | null): FileWriter =>
      this.#openWriter(file, from, memory, sending);
    let writer = resumed && openWriter(resumed, lastKeyOf(resumed) ?? fileAfter);
    let partsOfClosedFiles = 0;
    const { run } = this.#attempt;
    let rejected = rejectedRowsOf(run);
    if (rejected === 0 && run.ranges.length === 1) this.#rejected = collectRejectedLines(dependencies, run);

    const finishFile = async (open: FileWriter, finishesRange = false): Promise<void> => {
      const file = await stages.measure('upload', () => open.finish());
      open.close();
      partsOfClosedFiles += open.partsPlanned();
      writer = null;
      if (!file) return;
      const line = `Wrote ${file.rows.toLocaleString('en')} rows (${file.bytes.toLocaleString('en')} bytes) to ${destination.nameOf(file.key)}.`;
      await this.#attempt.fileCompleted(file, { finishesRange, line });
      this.#written.push(file);
    };

    try {
      let lastKey = fileAfter;
      for await (const encoded of this.#readBlocks(resumed, memory, stages)) {
        const { block } = encoded;
        if (writer?.isFull(destination.maxFileBytes)) {
          await finishFile(writer);
          if (partsOfClosedFiles >= settings.EXPORTD_PARTS_PER_EXECUTION) return false;
        }
        if (!writer) requireRoom(this.#attempt.run);
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
        await this.#attempt.confirm();
        return false;
      }
      if (writer) await finishFile(writer, true);
      if (resumed && this.#attempt.range.files.count === files.count) await this.#abortUpload(resumed.upload);
      if (!this.#attempt.range.finished) await this.#attempt.rangeFinished();
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
    const { after, until, files } = this.#attempt.range;
    const cutBlock = resumed?.cutBlock;
    const keys = { after: cutBlock?.last ?? lastKeyOf(resumed) ?? files.last ?? after, until };
    const blocks = source.heldBlocks(rowRangeOf(this.#attempt.run.spec, selection), keys, {
      blockBytes,
      signal,
      memory,
      threads: encoders.pageThreads,
      replacesBadValues: this.#call.destination.encoding.on_bad_row === 'reject',
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
    const { destination } = this.#call;
    const { spec } = this.#attempt.run;
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
      planPart: (key, part) => this.#attempt.partPlanned(key, part),
      requireAttempt: () => this.#attempt.confirm(),
    });
  }

  /** Creates the upload of the range's next file under a key that is not taken, and records it. */
  async #startUpload(signal: AbortSignal): Promise<FileUpload> {
    const { destination } = this.#call;
    await this.#attempt.recordDeferred();
    for (;;) {
      const file = this.#newFile();
      if (await destination.isTaken(file.key, signal)) {
        await this.#skipTakenKey(file.key);
        continue;
      }
      const upload = await destination.createUpload(file, signal);
      try {
        await this.#attempt.uploadCreated(
          {
            key: upload.key,
            upload_id: upload.upload_id,
            upload_token: upload.upload_token,
            part_bytes: upload.part_bytes,
            encoder: this.#encoder.identity,
          },
          this.#takeStartLine(),
        );
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
    const { destination } = this.#call;
    for (;;) {
      const file = this.#newFile();
      const { key, upload_token } = file;
      const started = { key, upload_token, encoder: this.#encoder.identity };
      await this.#attempt.wholeFilePlanned(started, part, this.#takeStartLine());
      const written = await destination.putFile(file, body, signal);
      if (written) return { ...summarizeParts(key, [part]), ...written };
      await this.#skipTakenKey(key);
    }
  }

  /** Records that another object has a key. The next file has the next generation, or the next number. */
  async #skipTakenKey(key: string): Promise<void> {
    const { destination } = this.#call;
    const before = this.#attempt.run.generation;
    await this.#attempt.keyTaken(key);
    const { generation } = this.#attempt.run;
    const next = generation === before ? 'under the next file number' : `as generation ${generation}`;
    await this.#attempt.log(
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
    return destination.fileKey(this.#attempt.run.spec, file, this.#encoder.extension);
  }

  #nextFile(): Omit<FileIdentity, 'mark'> {
    const { position, run, range } = this.#attempt;
    const { generation, ranges } = run;
    const { next_file } = range;
    return {
      generation,
      range: ranges.length > 1 ? position : null,
      // Without a maximum file size there is a second file only if the first has the maximum number of parts.
      file: this.#isNumbered || next_file > 0 ? next_file : null,
    };
  }

  /**
   * Aborts the upload of the range if nothing will resume it: the run has ended, or the attempt failed with a permanent
   * error. After a transient error the next attempt resumes it. A superseded attempt leaves it alone, since it belongs to
   * the newer one.
   */
  async #abortAfterPermanentFailure(error: unknown): Promise<void> {
    const found = await this.#attempt.inspect().catch(() => undefined);
    if (!found?.upload) return;
    // An aborted signal proves nothing: a user's cancellation is in the run's status, but a failed sibling range cancels too.
    const isPermanent = found.isLatest && !this.#call.signal.aborted && classifyError(error).permanent;
    if (finalStatuses.includes(found.status) || isPermanent) await this.#abortUpload(found.upload);
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
}

/** The key of the last row in a resumed file; null when no block ends in its parts. */
const lastKeyOf = (resumed: ResumedFile | null): SortKey | null =>
  resumed?.parts.findLast(({ last }) => last !== null)?.last ?? null;

const rejectedRowsOf = (run: ExistingRun): number =>
  [filesOf(run), ...run.ranges.flatMap(({ upload }) => upload?.parts ?? [])].reduce(
    (sum, { rejected }) => sum + rejected,
    0,
  );
