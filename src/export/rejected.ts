import { randomUUID } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { type Bound, bounds, boundText } from '../config/bounds.ts';
import type { RangeFile } from '../decisions/read_files.ts';
import { addFingerprints, emptyFingerprint, fingerprintHashOf } from '../domain/fingerprint.ts';
import type { ExistingRun } from '../domain/run_state.ts';
import type { ExportedFile } from '../domain/exported_files.ts';
import type { SortKey } from '../domain/sort_key.ts';
import { type EncodedBlock, type RejectedRow } from '../encoding/encoder.ts';
import { formatCrc32 } from '../encoding/compression.ts';
import { appendBytes, createGrowingBuffer, type MemoryReservation, reserve } from '../encoding/memory.ts';
import { type ExportDependencies, markOf, type OpenedCall } from './export_context.ts';
import { intervalOf, rowRangeOf } from './run_interval.ts';

/** The interval has so many unrepresentable rows that leaving them out would hide an error of the source. */
export class TooManyRejectedRows extends Error {
  override readonly name = 'TooManyRejectedRows';

  /** @param max what is exceeded: a number of rows by default */
  constructor(max: number | Bound, last: Pick<RejectedRow, 'id' | 'column' | 'reason'> | undefined) {
    const example = last ? ` The last one was ${last.id}: its column ${last.column} ${last.reason}.` : '';
    super(
      typeof max === 'number'
        ? `More than ${max} rows of the interval cannot be exported (EXPORTD_MAX_REJECTED_ROWS).${example}`
        : `The rows of the interval that cannot be exported have more than ${boundText(max)}.${example}`,
    );
  }
}

const contentType = 'application/jsonl';
/** The first lines need so much memory. */
const initialBytes = 16 * 1_024;

/** Rejected rows as JSON lines, which are kept until their file is written. */
export interface RejectedLines {
  /** @throws TooManyRejectedRows */
  add(block: Pick<EncodedBlock, 'rejected' | 'rejected_fingerprint'>): void;
  /** Reads blocks within the memory budget that holds the lines. */
  readonly memory: MemoryReservation;
  /** What was added, as a file without its key. */
  summary(): Omit<ExportedFile, 'key'>;
  /** The lines. Their memory is used again when more are added. */
  bytes(): Buffer;
  close(): void;
}

/** Collects lines of a run within the memory budget. */
export function collectRejectedLines(
  { memory: budget, settings }: Pick<ExportDependencies, 'memory' | 'settings'>,
  run: ExistingRun,
): RejectedLines {
  const memory = budget.openReservation();
  const text = createGrowingBuffer(0);
  let rows = 0;
  let reserved = 0;
  let fingerprint = emptyFingerprint(intervalOf(run.spec), fingerprintHashOf(run.spec.model));
  const bytes = (): Buffer => text.bytes.subarray(0, text.length);
  return {
    memory,
    add: ({ rejected, rejected_fingerprint }) => {
      if (rejected.length === 0) return;
      fingerprint = addFingerprints(fingerprint, rejected_fingerprint);
      for (const row of rejected) {
        const line = Buffer.from(jsonLine(row));
        if (text.length === 0) reserve(text, initialBytes);
        appendBytes(text, line, 0, line.length);
        rows += 1;
        if (rows > settings.EXPORTD_MAX_REJECTED_ROWS)
          throw new TooManyRejectedRows(settings.EXPORTD_MAX_REJECTED_ROWS, row);
        if (text.length > bounds.rejectedFile.max) throw new TooManyRejectedRows(bounds.rejectedFile, row);
      }
      memory.reserveEncoded(text.bytes.length - reserved);
      reserved = text.bytes.length;
    },
    summary: () => ({
      rows,
      fingerprint,
      bytes: text.length,
      crc32: formatCrc32(crc32(bytes())),
      first: null,
      last: null,
    }),
    bytes,
    close: () => memory.close(),
  };
}

/**
 * Writes the rows that the format cannot represent to a separate file of JSON lines. The file's checksum is recorded before it
 * is written, so no two attempts write different bytes under its key. If the rows differ from the recorded ones, the returned
 * run has a new generation.
 * @param collected the lines, if this attempt has read all rows of the interval. Else the key ranges that had any are read
 * again: the journal holds no rows, and an earlier attempt or another worker may have rejected them.
 * @throws TooManyRejectedRows
 */
export async function writeRejectedFile(
  call: OpenedCall,
  run: ExistingRun,
  collected: RejectedLines | null,
): Promise<ExistingRun> {
  const { dependencies, runId, destination, signal } = call;
  const { recorder } = dependencies;
  const mark = markOf(destination, randomUUID());
  const key = run.rejected_file?.key ?? destination.rejectedKey(run.spec, { ...run, mark });
  // What is not planned yet cannot be ours.
  if (!run.rejected_file && (await destination.isTaken(key, signal))) return skipTakenKey(call, run, key);
  const lines = collected ?? collectRejectedLines(dependencies, run);
  try {
    if (!collected) await readRejectedLines(call, run, lines);
    const summary = { key, ...lines.summary() };
    const planned = await recorder.planRejectedFile(runId, run.generation, summary);
    if (planned.rejected_file?.crc32 !== summary.crc32) return await recorder.reserveGeneration(runId);
    if (!(await destination.putObject(planned.rejected_file.key, contentType, lines.bytes(), signal)))
      return await skipTakenKey(call, planned, planned.rejected_file.key);
    await recorder.log(
      run,
      runId,
      'WARNING',
      `${summary.rows} rows cannot be exported. They are in ${destination.nameOf(planned.rejected_file.key)}.`,
    );
    return planned;
  } finally {
    if (!collected) lines.close();
  }
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

/** Reads and encodes the key ranges again that had rejected rows, and collects these. */
async function readRejectedLines(
  { dependencies, runId, destination, selection, signal }: OpenedCall,
  run: ExistingRun,
  lines: RejectedLines,
): Promise<void> {
  const { source, encoders, recorder } = dependencies;
  const { memory } = lines;
  const encoder = encoders.fileEncoder(destination.encoding, source.columns(run.spec.model, selection));
  const options = { blockBytes: encoder.blockBytes, signal, memory, replacesBadValues: true };
  for (const keyRange of keyRangesWithRejects(run, await recorder.readFiles(runId, run)))
    for await (const block of source.blocks(rowRangeOf(run.spec, selection), keyRange, options)) {
      // The buffer goes to a thread.
      const { length } = block.block;
      try {
        lines.add(await encoder.encode(block));
      } finally {
        memory.releaseRows(length);
      }
    }
}

/** The row is JSON already and is inserted unchanged, so that numbers keep their digits. */
const jsonLine = ({ id, column, reason, row }: RejectedRow): string =>
  `${JSON.stringify({ id, column, reason }).slice(0, -1)},"row":${row}}\n`;
