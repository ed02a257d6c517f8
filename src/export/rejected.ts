import { randomUUID } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { type Bound, bounds, boundText } from '../config/bounds.ts';
import type { RangeFile } from '../decisions/record_files.ts';
import { addFingerprints, emptyFingerprint, fingerprintHashOf } from '../domain/fingerprint.ts';
import type { ExistingRun } from '../domain/run_state.ts';
import type { SortKey } from '../domain/exported_files.ts';
import { type EncodedBlock, formatCrc32, type RejectedRow } from '../encoding/encoder.ts';
import { intervalOf, markOf, rowRangeOf, type OpenedCall } from './export_context.ts';

/** The interval has so many unrepresentable rows that leaving them out would hide an error of the source. */
export class TooManyRejectedRows extends Error {
  override readonly name = 'TooManyRejectedRows';

  /** @param max what is exceeded: a number of rows by default */
  constructor(max: number | Bound, last: Pick<RejectedRow, 'id' | 'column' | 'reason'> | undefined) {
    const example = last ? ` The last one was ${last.id}: its column ${last.column} ${last.reason}.` : '';
    super(
      typeof max === 'number'
        ? `More than ${max} rows of the interval cannot be represented in the file format (EXPORTD_MAX_REJECTED_ROWS).${example}`
        : `The rows of the interval that cannot be represented in the file format have more than ${boundText(max)}.${example}`,
    );
  }
}

const contentType = 'application/jsonl';

/**
 * Writes the rows that the format cannot represent to a separate file of JSON lines. It reads them again from the key
 * ranges that had any: the journal holds no rows, and an earlier attempt may have rejected them. The file's checksum is
 * recorded before it is written, so no two attempts write different bytes under its key. If the rows differ from the
 * recorded ones, the returned run has a new generation.
 * @throws TooManyRejectedRows
 */
export async function writeRejectedFile(call: OpenedCall, run: ExistingRun): Promise<ExistingRun> {
  const { dependencies, runId, destination, signal } = call;
  const { recorder, settings } = dependencies;
  const mark = markOf(destination, randomUUID());
  const key = run.rejected_file?.key ?? destination.rejectedKey(run.spec, { ...run, mark });
  // What is not planned yet cannot be ours.
  if (!run.rejected_file && (await destination.isTaken(key, signal))) return skipTakenKey(call, run, key);
  const lines: string[] = [];
  let length = 0;
  let fingerprint = emptyFingerprint(intervalOf(run.spec), fingerprintHashOf(run.spec.model));
  for (const keyRange of keyRangesWithRejects(run, await recorder.readFiles(runId, run)))
    for await (const { rejected, rejected_fingerprint } of encodeAgain(call, run, keyRange)) {
      fingerprint = addFingerprints(fingerprint, rejected_fingerprint);
      const added = rejected.map(jsonLine);
      lines.push(...added);
      if (lines.length > settings.EXPORTD_MAX_REJECTED_ROWS)
        throw new TooManyRejectedRows(settings.EXPORTD_MAX_REJECTED_ROWS, rejected.at(-1));
      length += added.reduce((total, line) => total + line.length, 0);
      if (length > bounds.rejectedFile.max)
        throw new TooManyRejectedRows(bounds.rejectedFile, rejected.at(-1));
    }
  const bytes = Buffer.from(lines.join(''));
  const checksum = formatCrc32(crc32(bytes));
  const summary = {
    key,
    rows: lines.length,
    fingerprint,
    bytes: bytes.length,
    crc32: checksum,
    first: null,
    last: null,
  };
  const planned = await recorder.planRejectedFile(runId, run.generation, summary);
  if (planned.rejected_file?.crc32 !== checksum) return recorder.reserveGeneration(runId);
  if (!(await destination.putObject(planned.rejected_file.key, contentType, bytes, signal)))
    return skipTakenKey(call, planned, planned.rejected_file.key);
  await recorder.log(
    run,
    runId,
    'WARNING',
    `${lines.length} rows cannot be represented in the file format. They are in ${destination.nameOf(planned.rejected_file.key)}.`,
  );
  return planned;
}

/** Records that another object has the key. The run that is returned has the next generation. */
async function skipTakenKey(
  { dependencies, runId, destination }: OpenedCall,
  run: ExistingRun,
  key: string,
): Promise<ExistingRun> {
  const { recorder } = dependencies;
  const next = await recorder.recordTakenRejectedKey(runId, run.generation, key);
  await recorder.log(
    run,
    runId,
    'WARNING',
    `The key ${destination.nameOf(key)} is taken by an object that this run did not write. It is kept, and the interval is exported as generation ${next.generation}.`,
  );
  return next;
}

/** The key ranges whose files lack rows: after one key, up to and including another. */
function* keyRangesWithRejects(
  run: ExistingRun,
  files: readonly RangeFile[],
): Generator<{ after: SortKey | null; until: SortKey | null }> {
  for (const [position, { after }] of run.ranges.entries()) {
    let lastKey = after;
    for (const { rejected, last } of files.filter(({ range }) => range === position)) {
      if (rejected > 0) yield { after: lastKey, until: last };
      lastKey = last ?? lastKey;
    }
  }
}

async function* encodeAgain(
  { dependencies, destination, selection, signal }: OpenedCall,
  run: ExistingRun,
  keyRange: { after: SortKey | null; until: SortKey | null },
): AsyncGenerator<EncodedBlock> {
  const { source, encoders } = dependencies;
  const encoder = encoders.fileEncoder(destination.encoding, source.columns(run.spec.model, selection));
  const options = { blockBytes: encoder.blockBytes, signal };
  for await (const block of source.blocks(rowRangeOf(run.spec, selection), keyRange, options))
    yield encoder.encode(block);
}

/** The row is JSON already and is inserted unchanged, so that numbers keep their digits. */
const jsonLine = ({ id, column, reason, row }: RejectedRow): string =>
  `${JSON.stringify({ id, column, reason }).slice(0, -1)},"row":${row}}\n`;
