import type { Destination, FilePlace } from '../src/destination/destination.ts';
import type { OpenedRun } from '../src/domain/run.ts';
import type { EncodedBlock, FileEncoder } from '../src/encoding/encoder.ts';
import type { Source } from '../src/source/source.ts';
import { abandonIfOver, abandonUpload } from './abandon.ts';
import type { ExportDependencies } from './export_dependencies.ts';
import { createFileWriter, type ResumedFile } from './file_writer.ts';
import { intervalOf, rangeOf } from './run_range.ts';

/** One attempt at the export of a run's interval. */
export interface ExportAttempt {
  readonly dependencies: ExportDependencies;
  readonly runId: string;
  readonly destination: Destination;
  readonly encoder: FileEncoder;
  /** Told with every heartbeat. */
  readonly progress: { rows: number };
  readonly signal: AbortSignal;
}

/** The place of an interval's file when it has only one. */
export const onlyFile = ({ generation }: OpenedRun): FilePlace => ({ generation, range: null, file: null });

/**
 * Reads, encodes and sends the rows of the interval, those behind a resumed file's parts alone.
 * @returns false when the parts of one execution were sent and rows are left.
 */
export async function exportRows(
  attempt: ExportAttempt,
  run: OpenedRun,
  resumed: ResumedFile | null,
): Promise<boolean> {
  const { runId, destination, encoder, progress, signal } = attempt;
  const { runSteps, source, settings } = attempt.dependencies;
  const key = resumed?.upload.key ?? destination.fileKey(run.subject, onlyFile(run), encoder.extension);
  const failed = new AbortController();
  const writer = createFileWriter({
    destination,
    encoder,
    key,
    resumed,
    signal: AbortSignal.any([signal, failed.signal]),
    recordUpload: ({ upload_id, mark }) =>
      runSteps.recordUpload(runId, run, { key, upload_id, mark, encoder: encoder.identity }),
    planPart: (part) => runSteps.planPart(runId, run, key, part),
    requireAttempt: () => runSteps.requireAttempt(runId, run),
  });
  try {
    const pages = source.pages(rangeOf(run), resumed?.parts.at(-1)?.last ?? null, signal);
    for await (const block of encodeInOrder(pages, encoder, settings.EXPORTD_ENCODER_THREADS)) {
      await writer.append(block);
      progress.rows += block.rows;
      if (writer.partsPlanned() < settings.EXPORTD_PARTS_PER_EXECUTION) continue;
      await writer.settled();
      return false;
    }
    const file = await writer.finish();
    if (file) await runSteps.recordFile(runId, run, file);
    else if (resumed) await abandonUpload(destination, resumed.upload);
    const result = file
      ? `Wrote ${file.rows} records, ${file.bytes} bytes, to ${destination.nameOf(key)}.`
      : `There are no records in ${intervalOf(run)}; no file is written.`;
    await runSteps.log(run, runId, 'INFO', result);
    return true;
  } catch (error) {
    failed.abort(error);
    await writer.settled().catch(() => undefined);
    await abandonIfOver({ runSteps, destination }, runId, run, { error, signal });
    throw error;
  }
}

/** Encodes pages in the pool's threads, as many at once as it has, and gives the blocks out in the pages' order. */
async function* encodeInOrder(
  pages: ReturnType<Source['pages']>,
  encoder: FileEncoder,
  pagesInFlight: number,
): AsyncGenerator<EncodedBlock> {
  const encoding: Promise<EncodedBlock>[] = [];
  for await (const page of pages) {
    const block = encoder.encode(page);
    // Its turn to be awaited may never come when an earlier one fails.
    block.catch(() => undefined);
    encoding.push(block);
    const next = encoding.length >= pagesInFlight ? encoding.shift() : undefined;
    if (next) yield await next;
  }
  for (const block of encoding) yield await block;
}
