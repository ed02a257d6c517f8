import { emptyFingerprint, fingerprintHashOf } from '../domain/fingerprint.ts';
import { filesOf, type ExistingRun, type SortKey } from '../domain/run.ts';
import { encodeBlocks, type ReservedBlock } from '../encoding/encode_blocks.ts';
import type { EncodedBlock } from '../encoding/encoder.ts';
import { joinEncodedBlocks } from '../encoding/join_encoded_blocks.ts';
import { abortAfterPermanentFailure, tryAbortUpload } from './abort_upload.ts';
import { createFileWriter, type FileTarget, type FileWriter, type ResumedFile } from './file_writer.ts';
import { currentAttempt, rangeAt, type ExportAttempt } from './range_attempt.ts';
import { intervalOf, rowRangeOf } from './row_range.ts';
import { createStageClock } from './stage_clock.ts';
import { startUpload, writeWholeFile, type CurrentRun } from './start_file.ts';
import { TooManyRejectedRows } from './too_many_rejected_rows.ts';

/**
 * Reads, encodes and sends the rows of a range that its files and the parts of a resumed file do not hold yet.
 * @returns the run, and whether all rows were sent. They were not when this execution has sent its share of parts; a file
 * that cannot be resumed is finished first, or the next execution would send its parts again.
 */
export async function exportRows(
  attempt: ExportAttempt,
  initial: ExistingRun,
  resumed: ResumedFile | null,
): Promise<{ readonly run: ExistingRun; readonly done: boolean }> {
  const { dependencies, runId, destination, encoder, selection, progress, signal } = attempt;
  const { recorder, source, settings } = dependencies;
  const memory = dependencies.memory.openReservation();
  const stages = createStageClock(dependencies.onStage);
  const { after, until, files } = rangeAt(attempt, initial);
  const fileAfter = files.last ?? after;
  const resumeAfter = resumed?.cutBlock?.last ?? lastKeyOf(resumed) ?? fileAfter;
  const failed = new AbortController();
  const sending = AbortSignal.any([signal, failed.signal]);
  const current: CurrentRun = { run: initial };
  const openWriter = (file: ResumedFile | null, from: SortKey | null): FileWriter =>
    createRangeWriter(attempt, current, { resumed: file, after: from, memory, signal: sending });
  let writer: FileWriter | null = resumed && openWriter(resumed, lastKeyOf(resumed) ?? fileAfter);
  let partsOfClosedFiles = 0;
  let rejected = rejectedRowsOf(initial);

  const finishFile = async (open: FileWriter): Promise<void> => {
    const file = await stages.measure('upload', () => open.finish());
    open.close();
    partsOfClosedFiles += open.partsPlanned();
    writer = null;
    if (!file) return;
    current.run = await recorder.recordFile(runId, currentAttempt(attempt, current.run), file);
    await recorder.log(
      current.run,
      runId,
      'INFO',
      `Wrote ${file.rows} rows (${file.bytes} bytes) to ${destination.nameOf(file.key)}.`,
    );
  };

  try {
    const { blockBytes } = encoder;
    const threads = dependencies.encoders.pageThreads;
    const rows = rowRangeOf(initial.spec, selection);
    const keys = { after: resumeAfter, until };
    const blocks = source.heldBlocks(rows, keys, { blockBytes, signal, memory, threads });
    // A page for each thread: the blocks of a page are encoded by the thread that read it.
    const blocksPerPage = Math.ceil(settings.EXPORTD_SOURCE_PAGE_SIZE / blockBytes);
    const blocksInFlight = settings.EXPORTD_ENCODER_THREADS * blocksPerPage;
    const { add: onWait } = stages;
    const { grouping } = encoder;
    const context = { encoder: grouping ?? encoder, memory, blocksInFlight, onWait };
    const encodedBlocks = grouping
      ? joinEncodedBlocks(encodeBlocks(blocks, context), grouping, memory)
      : encodeBlocks(blocks, context);
    let lastKey = fileAfter;
    for await (const encoded of startingWith(resumed?.cutBlock ?? null, encodedBlocks)) {
      const { block } = encoded;
      if (writer?.isFull(destination.maxFileBytes)) {
        await finishFile(writer);
        if (partsOfClosedFiles >= settings.EXPORTD_PARTS_PER_EXECUTION)
          return { run: current.run, done: false };
      }
      writer ??= openWriter(null, lastKey);
      lastKey = block.last;
      const open = writer;
      await stages.measure('upload', () => open.append(encoded));
      progress.rows += block.rows;
      rejected += block.rejected.length;
      if (rejected > settings.EXPORTD_MAX_REJECTED_ROWS)
        throw new TooManyRejectedRows(settings.EXPORTD_MAX_REJECTED_ROWS, block.rejected.at(-1));
      if (partsOfClosedFiles + writer.partsPlanned() < settings.EXPORTD_PARTS_PER_EXECUTION) continue;
      if (!(await writer.canBeResumed())) continue;
      await writer.settled();
      const latest = await recorder.requireAttempt(runId, currentAttempt(attempt, current.run));
      return { run: latest, done: false };
    }
    if (writer) await finishFile(writer);
    if (resumed && rangeAt(attempt, current.run).files.count === files.count)
      await tryAbortUpload(destination, resumed.upload);
    const done = await recorder.finishRange(runId, currentAttempt(attempt, current.run));
    return { run: done, done: true };
  } catch (error) {
    failed.abort(error);
    await writer?.settled().catch(() => undefined);
    const failedAttempt = currentAttempt(attempt, current.run);
    await abortAfterPermanentFailure({ recorder, destination }, runId, failedAttempt, { error, signal });
    throw error;
  } finally {
    writer?.close();
    memory.close();
    stages.report();
  }
}

function createRangeWriter(
  attempt: ExportAttempt,
  current: CurrentRun,
  file: Pick<FileTarget, 'resumed' | 'after' | 'memory' | 'signal'>,
): FileWriter {
  const { dependencies, runId, destination, encoder } = attempt;
  const { recorder } = dependencies;
  const { spec } = current.run;
  const latest = () => currentAttempt(attempt, current.run);
  return createFileWriter({
    ...file,
    destination,
    encoder,
    emptyFingerprint: emptyFingerprint(intervalOf(spec), fingerprintHashOf(spec.model)),
    startUpload: () => startUpload(attempt, current, file.signal),
    writeWholeFile: (whole) => writeWholeFile(attempt, current, whole, file.signal),
    planPart: (key, part) => recorder.planPart(runId, latest(), key, part),
    requireAttempt: () => recorder.requireAttempt(runId, latest()),
  });
}

/** The key of the last row in a resumed file; null when no block ends in its parts. */
const lastKeyOf = (resumed: ResumedFile | null): SortKey | null =>
  resumed?.parts.findLast(({ last }) => last !== null)?.last ?? null;

/** The block in which a file is resumed, then the others. */
async function* startingWith(
  block: EncodedBlock | null,
  others: AsyncGenerator<ReservedBlock>,
): AsyncGenerator<ReservedBlock> {
  if (block) yield { block, release: () => undefined };
  yield* others;
}

const rejectedRowsOf = (run: ExistingRun): number =>
  [filesOf(run), ...run.ranges.flatMap(({ upload }) => upload?.parts ?? [])].reduce(
    (sum, { rejected }) => sum + rejected,
    0,
  );
