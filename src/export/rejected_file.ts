import { crc32 } from 'node:zlib';
import type { ExistingRun, SortKey } from '../domain/run.ts';
import type { RejectedRow } from '../encoding/encoder.ts';
import type { RangeWork } from './export_range.ts';
import { formatCrc32 } from './file_summary.ts';
import { rowRangeOf } from './row_range.ts';
import { TooManyRejectedRows } from './too_many_rejected_rows.ts';

const contentType = 'application/jsonl';

/**
 * Writes the rows that the format could not hold into a file of their own, as lines of JSON. They are read once more,
 * from the stretches that had any: the journal holds no rows, and an attempt may have come after the one that met them.
 * The file is recorded before it is written, so nobody writes anything else under its key; where an attempt finds other
 * rows than one before it recorded, the answer is a run whose next generation begins.
 * @throws TooManyRejectedRows
 */
export async function writeRejectedFile(work: RangeWork, run: ExistingRun): Promise<ExistingRun> {
  const { dependencies, runId, destination, signal } = work;
  const { recorder, settings } = dependencies;
  const lines: string[] = [];
  for (const stretch of stretchesWithRejects(run))
    for await (const rejected of rejectedRows(work, run, stretch)) {
      lines.push(lineOf(rejected));
      if (lines.length > settings.EXPORTD_MAX_REJECTED_ROWS)
        throw new TooManyRejectedRows(settings.EXPORTD_MAX_REJECTED_ROWS, rejected);
    }
  const bytes = Buffer.from(lines.join(''));
  const key = destination.rejectedKey(run.spec, run.generation);
  const checksum = formatCrc32(crc32(bytes));
  const figures = { key, rows: lines.length, bytes: bytes.length, crc32: checksum, first: null, last: null };
  const planned = await recorder.planRejectedFile(runId, run.generation, figures);
  if (planned.rejected_file?.crc32 !== checksum) return recorder.reserveGeneration(runId);
  await destination.putObject(key, contentType, bytes, signal);
  await recorder.log(
    run,
    runId,
    'WARNING',
    `${lines.length} rows cannot be held by the format; they are in ${destination.nameOf(key)}.`,
  );
  return planned;
}

/** The stretches of key order, each behind a key and up to another, in whose files rows are missing. */
function* stretchesWithRejects(
  run: ExistingRun,
): Generator<{ after: SortKey | null; until: SortKey | null }> {
  for (const { after, files } of run.ranges) {
    let reached = after;
    for (const { rejected, last } of files) {
      if (rejected > 0) yield { after: reached, until: last };
      reached = last ?? reached;
    }
  }
}

async function* rejectedRows(
  { dependencies, destination, selection, signal }: RangeWork,
  run: ExistingRun,
  stretch: { after: SortKey | null; until: SortKey | null },
): AsyncGenerator<RejectedRow> {
  const { source, encoders } = dependencies;
  const encoder = encoders.fileEncoder(destination.encoding, source.columns(run.spec.model, selection));
  const options = { blockBytes: encoder.blockBytes, signal };
  for await (const block of source.blocks(rowRangeOf(run.spec, selection), stretch, options))
    yield* (await encoder.encode(block)).rejected;
}

/** The members in front are made by JSON.stringify; the row is JSON already and keeps its digits. */
const lineOf = ({ id, column, reason, row }: RejectedRow): string =>
  `${JSON.stringify({ id, column, reason }).slice(0, -1)},"row":${row}}\n`;
