import { filesOf, type OpenedRun } from '../src/domain/run.ts';
import type { EncodedBlock, FileEncoder } from '../src/encoding/encoder.ts';
import type { Source } from '../src/source/source.ts';
import { abandonIfOver, abandonUpload } from './abandon.ts';
import { createFileWriter, type FileWriter, type ResumedFile } from './file_writer.ts';
import { namesOf, nextKey, rangeAt, type ExportAttempt } from './range_attempt.ts';
import { rowRangeOf } from './run_range.ts';
import { TooManyRejectedRows } from './too_many_rejected_rows.ts';

/**
 * Reads, encodes and sends the rows of the range, those behind its files and a resumed file's parts alone.
 * @returns the run, and whether all rows of the range are sent: no when the parts of one execution were and rows are left.
 */
export async function exportRows(
  attempt: ExportAttempt,
  taken: OpenedRun,
  resumed: ResumedFile | null,
): Promise<{ readonly run: OpenedRun; readonly done: boolean }> {
  const { dependencies, runId, destination, encoder, selection, progress, signal } = attempt;
  const { runSteps, source, settings } = dependencies;
  const { after, until, files } = rangeAt(attempt, taken);
  const reached = resumed?.parts.at(-1)?.last ?? files.at(-1)?.last ?? after;
  const failed = new AbortController();
  const sending = AbortSignal.any([signal, failed.signal]);
  let run = taken;
  let writer: FileWriter | null = resumed && openWriter(attempt, run, resumed, sending);
  let partsBefore = 0;
  let rejected = rejectedSoFar(taken);

  const finishFile = async (open: FileWriter): Promise<void> => {
    const file = await open.finish();
    open.close();
    partsBefore += open.partsPlanned();
    writer = null;
    if (!file) return;
    run = await runSteps.recordFile(runId, namesOf(attempt, run), file);
    await runSteps.log(
      run,
      runId,
      'INFO',
      `Wrote ${file.rows} records, ${file.bytes} bytes, to ${destination.nameOf(file.key)}.`,
    );
  };

  try {
    const { blockBytes } = encoder;
    const blocks = source.blocks(
      rowRangeOf(run, selection),
      { after: reached, until },
      { blockBytes, signal },
    );
    for await (const block of encodeInOrder(blocks, encoder, settings.EXPORTD_ENCODER_THREADS)) {
      if (writer?.isFull(destination.maxFileBytes)) await finishFile(writer);
      writer ??= openWriter(attempt, run, null, sending);
      await writer.append(block);
      progress.rows += block.rows;
      rejected += block.rejected.length;
      if (rejected > settings.EXPORTD_REJECTED_ROWS_MAX)
        throw new TooManyRejectedRows(settings.EXPORTD_REJECTED_ROWS_MAX, block.rejected.at(-1));
      if (partsBefore + writer.partsPlanned() < settings.EXPORTD_PARTS_PER_EXECUTION) continue;
      await writer.settled();
      return { run: await runSteps.requireAttempt(runId, namesOf(attempt, run)), done: false };
    }
    if (writer) await finishFile(writer);
    if (resumed && rangeAt(attempt, run).files.length === files.length)
      await abandonUpload(destination, resumed.upload);
    return { run: await runSteps.finishRange(runId, namesOf(attempt, run)), done: true };
  } catch (error) {
    failed.abort(error);
    await writer?.settled().catch(() => undefined);
    const names = namesOf(attempt, run);
    await abandonIfOver({ runSteps, destination }, runId, names, { error, signal });
    throw error;
  } finally {
    writer?.close();
  }
}

function openWriter(
  attempt: ExportAttempt,
  run: OpenedRun,
  resumed: ResumedFile | null,
  signal: AbortSignal,
): FileWriter {
  const { dependencies, runId, destination, encoder } = attempt;
  const { runSteps } = dependencies;
  const names = namesOf(attempt, run);
  const key = resumed?.upload.key ?? nextKey(attempt, run);
  const file = rangeAt(attempt, run).next_file;
  return createFileWriter({
    destination,
    encoder,
    key,
    resumed,
    signal,
    recordUpload: ({ upload_id, mark }) =>
      runSteps.recordUpload(runId, names, { file, key, upload_id, mark, encoder: encoder.identity }),
    planPart: (part) => runSteps.planPart(runId, names, key, part),
    requireAttempt: () => runSteps.requireAttempt(runId, names),
  });
}

const rejectedSoFar = (run: OpenedRun): number =>
  [...filesOf(run), ...run.ranges.flatMap(({ upload }) => upload?.parts ?? [])].reduce(
    (sum, { rejected }) => sum + rejected,
    0,
  );

/** Encodes blocks in the pool's threads, as many at once as it has, and gives them out in the rows' order. */
async function* encodeInOrder(
  blocks: ReturnType<Source['blocks']>,
  encoder: FileEncoder,
  blocksInFlight: number,
): AsyncGenerator<EncodedBlock> {
  const encoding: Promise<EncodedBlock>[] = [];
  for await (const rows of blocks) {
    const block = encoder.encode(rows);
    // Its turn to be awaited may never come when an earlier one fails.
    block.catch(() => undefined);
    encoding.push(block);
    const next = encoding.length >= blocksInFlight ? encoding.shift() : undefined;
    if (next) yield await next;
  }
  for (const block of encoding) yield await block;
}
