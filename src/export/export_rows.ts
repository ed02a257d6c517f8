import { emptyFingerprint, fingerprintHashOf } from '../domain/fingerprint.ts';
import { filesOf, type ExistingRun } from '../domain/run.ts';
import type { MemoryReservation } from '../encoding/memory_budget.ts';
import { encodeBlocks } from '../encoding/encode_blocks.ts';
import { abortAfterPermanentFailure, tryAbortUpload } from './abort_upload.ts';
import { createFileWriter, type FileWriter, type ResumedFile } from './file_writer.ts';
import { currentAttempt, nextKey, rangeAt, type ExportAttempt } from './range_attempt.ts';
import { intervalOf, rowRangeOf } from './row_range.ts';
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
  const { after, until, files } = rangeAt(attempt, initial);
  const resumeAfter = resumed?.parts.at(-1)?.last ?? files.at(-1)?.last ?? after;
  const failed = new AbortController();
  const sending = AbortSignal.any([signal, failed.signal]);
  let run = initial;
  let writer: FileWriter | null = resumed && openWriter(attempt, run, resumed, memory, sending);
  let partsOfClosedFiles = 0;
  let rejected = rejectedRowsOf(initial);

  const finishFile = async (open: FileWriter): Promise<void> => {
    const file = await open.finish();
    open.close();
    partsOfClosedFiles += open.partsPlanned();
    writer = null;
    if (!file) return;
    run = await recorder.recordFile(runId, currentAttempt(attempt, run), file);
    await recorder.log(
      run,
      runId,
      'INFO',
      `Wrote ${file.rows} rows (${file.bytes} bytes) to ${destination.nameOf(file.key)}.`,
    );
  };

  try {
    const { blockBytes } = encoder;
    const rows = rowRangeOf(run.spec, selection);
    const blocks = source.blocks(rows, { after: resumeAfter, until }, { blockBytes, signal, memory });
    // One block for each thread, and one that waits for it.
    const blocksInFlight = 2 * settings.EXPORTD_ENCODER_THREADS;
    for await (const encoded of encodeBlocks(blocks, { encoder, memory, blocksInFlight })) {
      const { block } = encoded;
      if (writer?.isFull(destination.maxFileBytes)) {
        await finishFile(writer);
        if (partsOfClosedFiles >= settings.EXPORTD_PARTS_PER_EXECUTION) return { run, done: false };
      }
      writer ??= openWriter(attempt, run, null, memory, sending);
      await writer.append(encoded);
      progress.rows += block.rows;
      rejected += block.rejected.length;
      if (rejected > settings.EXPORTD_MAX_REJECTED_ROWS)
        throw new TooManyRejectedRows(settings.EXPORTD_MAX_REJECTED_ROWS, block.rejected.at(-1));
      if (partsOfClosedFiles + writer.partsPlanned() < settings.EXPORTD_PARTS_PER_EXECUTION) continue;
      if (!(await writer.canBeResumed())) continue;
      await writer.settled();
      return { run: await recorder.requireAttempt(runId, currentAttempt(attempt, run)), done: false };
    }
    if (writer) await finishFile(writer);
    if (resumed && rangeAt(attempt, run).files.length === files.length)
      await tryAbortUpload(destination, resumed.upload);
    return { run: await recorder.finishRange(runId, currentAttempt(attempt, run)), done: true };
  } catch (error) {
    failed.abort(error);
    await writer?.settled().catch(() => undefined);
    const failedAttempt = currentAttempt(attempt, run);
    await abortAfterPermanentFailure({ recorder, destination }, runId, failedAttempt, { error, signal });
    throw error;
  } finally {
    writer?.close();
    memory.close();
  }
}

function openWriter(
  attempt: ExportAttempt,
  run: ExistingRun,
  resumed: ResumedFile | null,
  memory: MemoryReservation,
  signal: AbortSignal,
): FileWriter {
  const { dependencies, runId, destination, encoder } = attempt;
  const { recorder } = dependencies;
  const rangeAttempt = currentAttempt(attempt, run);
  const key = resumed?.upload.key ?? nextKey(attempt, run);
  const file = rangeAt(attempt, run).next_file;
  return createFileWriter({
    destination,
    encoder,
    key,
    resumed,
    memory,
    signal,
    emptyFingerprint: emptyFingerprint(intervalOf(run.spec), fingerprintHashOf(run.spec.model)),
    recordUpload: ({ upload_id, upload_token }) =>
      recorder.recordUpload(runId, rangeAttempt, {
        file,
        key,
        upload_id,
        upload_token,
        encoder: encoder.identity,
      }),
    planPart: (part) => recorder.planPart(runId, rangeAttempt, key, part),
    requireAttempt: () => recorder.requireAttempt(runId, rangeAttempt),
  });
}

const rejectedRowsOf = (run: ExistingRun): number =>
  [...filesOf(run), ...run.ranges.flatMap(({ upload }) => upload?.parts ?? [])].reduce(
    (sum, { rejected }) => sum + rejected,
    0,
  );
