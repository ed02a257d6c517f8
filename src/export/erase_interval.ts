import { crc32 } from 'node:zlib';
import type { Destination } from '../destination/open_destination.ts';
import type { EarlierFile } from '../domain/exported_files.ts';
import { haveSameRows, rowsOfFingerprint } from '../domain/fingerprint.ts';
import type { ReplacedRun } from '../domain/replaced_generation.ts';
import { type ExistingRun, exportedFingerprint, type RunSpec, sourceAfter } from '../domain/run_state.ts';
import { encodeBlocks, joinEncodedBlocks } from '../encoding/encode_blocks.ts';
import { formatCrc32 } from '../encoding/encoder.ts';
import type { MemoryReservation } from '../encoding/memory.ts';
import type { ExportedColumn } from '../source/row_selection.ts';
import { FileUnreadable } from '../verify/row.ts';
import { type ExportCall, type ExportDependencies, noEncoder, type OpenedCall } from './export_context.ts';
import { ObjectAbsent, type OpenedErasure, openPublishedRows, type PublishedRows } from './published_rows.ts';
import { writeRejectedFile } from './rejected.ts';

/** The new files are not the old ones without the erased rows. Nothing was published. */
class ErasureMismatch extends Error {
  override readonly name = 'ErasureMismatch';
}

/** The manifest was replaced since the erasure searched it. It searches the interval again. */
class ErasureObsolete extends Error {
  override readonly name = 'ErasureObsolete';
}

/** Opens the files of the manifest that a run of an erasure replaces. @throws ErasureObsolete, DestinationError */
export async function openErasure(
  { dependencies }: Pick<ExportCall, 'dependencies'>,
  run: ExistingRun,
): Promise<OpenedErasure> {
  const { recorder, openLocation, readErasedIds } = dependencies;
  const replaced = requireSearched(run, await recorder.findReplaced(run));
  const [files, erased, columns] = await Promise.all([
    recorder.readReplacedFiles(replaced),
    readErasedIds({ team_id: run.spec.team_id, erasure_id: run.spec.erasure_id ?? '' }),
    columnsOf(dependencies, run),
  ]);
  const location = await openLocation(replaced.run.spec);
  const { spec, rejected_file } = replaced.run;
  const ids = new Set(erased);
  return {
    replaced,
    rows: openPublishedRows({ spec, files, rejected_file, location, columns }, ids),
    erased: ids,
    close: location.close,
  };
}

const columnsOf = async (
  { source, readSelection }: Pick<ExportDependencies, 'source' | 'readSelection'>,
  { spec }: ExistingRun,
) => source.columns(spec.model, await readSelection(spec));

/** Returns the run whose manifest the erasure searched. @throws ErasureObsolete when it is not the current one */
export function requireSearched(run: ExistingRun, replaced: ReplacedRun | null): ReplacedRun {
  const searched = run.replacement?.replaced;
  if (replaced && replaced.run_id === searched?.run_id && replaced.run.generation === searched.generation)
    return replaced;
  throw new ErasureObsolete('The interval has another manifest than the one that the erasure searched.');
}

/**
 * Finishes the export of a run of an erasure: writes the rejected rows that stay, and compares the new files with the old ones.
 * Their fingerprint must be that of the old ones without the erased rows, and all values of all other rows must be the same, as the
 * readers of `verify` read them.
 * @throws ErasureMismatch
 */
export async function finishErasure(
  call: OpenedCall,
  erasure: OpenedErasure,
  run: ExistingRun,
): Promise<ExistingRun> {
  const { dependencies, runId, destination, progress, signal } = call;
  const { recorder } = dependencies;
  const { replaced, rows } = erasure;
  if (run.ranges.some(({ finished }) => !finished)) return run;
  const rejected = await rows.rejected(signal);
  const { bytes, fingerprint } = rejected;
  const summary = { rows: rejected.rows, bytes: bytes.length, crc32: formatCrc32(crc32(bytes)) };
  const counted =
    rejected.rows === 0
      ? run
      : await writeRejectedFile(call, run, {
          summary: () => ({ ...summary, fingerprint, first: null, last: null }),
          bytes: () => bytes,
        });
  if (counted.generation !== run.generation) return counted;
  const { earlier, kept } = replaced.run.earlier_generations;
  for (const file of [...earlier, ...kept]) {
    const rewritten = await rewriteEarlierFile(call, erasure, counted, file);
    if (rewritten.generation !== run.generation) return rewritten;
  }
  const exported = exportedFingerprint(counted);
  const written = openPublishedRows(
    {
      spec: run.spec,
      files: await recorder.readFiles(runId, counted),
      rejected_file: null,
      location: destination,
      columns: await columnsOf(dependencies, run),
    },
    new Set(),
  );
  const onRow = (): void => {
    progress.rows += 1;
  };
  const hasRows = counted.source_fingerprint !== null && haveSameRows(exported, counted.source_fingerprint);
  if (!hasRows || (await rows.contents(signal, onRow)) !== (await written.contents(signal, onRow)))
    throw new ErasureMismatch(
      'The new files differ from the old ones by other rows than those of the erased persons. Nothing was published.',
    );
  const before = exportedFingerprint(replaced.run);
  const source = replaced.run.finished ? sourceAfter(replaced.run) : before;
  const erased = rowsOfFingerprint(before) - rowsOfFingerprint(exported);
  return recorder.finishExport(runId, counted.generation, {
    source_rows: Math.max(0, (replaced.run.finished?.source_rows ?? rowsOfFingerprint(before)) - erased),
    fingerprint: source.all_events ? source : exported,
    encoder: counted.encoder ?? noEncoder,
  });
}

/** A file of an earlier generation is rewritten in memory. */
const maxEarlierBytes = 64 * 1024 * 1024;

/** A file of an earlier generation, opened to be searched and written again. */
interface OpenedEarlierFile {
  /** Its rows, or lines of rejected rows. */
  readonly rows: PublishedRows;
  /** How many rows it has of erased persons, and others. */
  readonly counts: { readonly erased: number; readonly others: number };
  /** Reads rows from other bytes as from the file. */
  readonly rowsOf: (file: Pick<EarlierFile, 'key' | 'rows' | 'bytes'>, bytes: Buffer) => PublishedRows;
  readonly columns: readonly ExportedColumn[];
  readonly location: Destination;
}

const isRejectedFile = ({ key }: Pick<EarlierFile, 'key'>): boolean => key.endsWith('-rejected.jsonl');

/**
 * Searches a file of an earlier generation. Its columns and its format are those of the config that wrote it.
 * @returns null if it has no row of the persons, or does not exist
 * @throws FileUnreadable when it has some, and cannot be written again
 */
export async function openEarlierFile(
  {
    source,
    readSelection,
    openLocation,
    findGeneration,
  }: Pick<ExportDependencies, 'source' | 'readSelection' | 'openLocation'> & {
    readonly findGeneration: (
      generation: number,
    ) => Promise<Pick<RunSpec, 'config_version' | 'model'> | undefined>;
  },
  { spec, file, erased }: { spec: RunSpec; file: EarlierFile; erased: ReadonlySet<string> },
  { signal, onRow }: { readonly signal: AbortSignal; readonly onRow: () => void },
): Promise<OpenedEarlierFile | null> {
  const written = await findGeneration(file.generation);
  const specOfFile = { ...spec, ...written };
  const location = await openLocation(specOfFile);
  const columns = source.columns(specOfFile.model, await readSelection(specOfFile));
  const published = { key: file.key, rows: file.rows, bytes: file.bytes, first: null, last: null };
  const rowsIn = (
    one: typeof published,
    openObject: Pick<Destination, 'openObject'>['openObject'],
    ids: ReadonlySet<string>,
  ): PublishedRows =>
    openPublishedRows(
      {
        ...{ spec: specOfFile, columns, location: { nameOf: location.nameOf, openObject } },
        ...(isRejectedFile(file) ? { files: [], rejected_file: one } : { files: [one], rejected_file: null }),
      },
      ids,
    );
  try {
    const rows = rowsIn(published, location.openObject, erased);
    const found = await rows.search(signal, onRow).catch((error: unknown) => {
      // What does not exist has no rows.
      if (error instanceof ObjectAbsent) return { rows: 0, erased_rows: 0 };
      throw error;
    });
    if (found.erased_rows === 0) {
      location.close();
      return null;
    }
    const reason = !written
      ? 'the journal does not know what wrote it'
      : file.bytes > maxEarlierBytes
        ? `it is larger than ${maxEarlierBytes} bytes`
        : location.table(specOfFile.model) && !isRejectedFile(file)
          ? 'it belongs to a table'
          : undefined;
    if (reason !== undefined)
      throw new FileUnreadable(
        `${location.nameOf(file.key)} of an earlier generation has rows of the persons, and cannot be written again: ${reason}. Retry the run of the interval with {"allow_shrink": true}, which deletes it, and repeat the erasure`,
      );
    return {
      ...{ rows, columns, location },
      counts: { erased: found.erased_rows, others: found.rows - found.erased_rows },
      rowsOf: (one, bytes) =>
        rowsIn(
          { ...published, ...one },
          () =>
            Promise.resolve({
              etag: undefined,
              bytes: bytes.length,
              chunks: chunksOf(bytes),
              close: () => undefined,
            }),
          new Set(),
        ),
    };
  } catch (error) {
    location.close();
    throw error;
  }
}

async function* chunksOf(bytes: Buffer): AsyncGenerator<Buffer> {
  yield await Promise.resolve(bytes);
}

/**
 * Writes a file of an earlier generation again, without the rows of the persons; does nothing if it has none. Its checksum is
 * recorded before it is written, so no two attempts write different bytes under its key.
 * @returns the run, which has a new generation if other bytes were recorded, or if the key is taken
 * @throws ErasureMismatch, FileUnreadable
 */
async function rewriteEarlierFile(
  call: OpenedCall,
  { replaced, erased }: OpenedErasure,
  run: ExistingRun,
  file: EarlierFile,
): Promise<ExistingRun> {
  const { dependencies, runId, destination, progress, signal } = call;
  const { recorder } = dependencies;
  const onRow = (): void => {
    progress.rows += 1;
  };
  const findGeneration = (generation: number) => recorder.findGeneration(run, generation);
  const opened = await openEarlierFile(
    { ...dependencies, findGeneration },
    { spec: replaced.run.spec, file, erased },
    { signal, onRow },
  );
  if (!opened) return run;
  const memory = dependencies.memory.openReservation();
  try {
    const bytes = isRejectedFile(file)
      ? (await opened.rows.rejected(signal)).bytes
      : await encodeRows(call, opened, memory);
    const key = file.key.replace(/(?=(\.\d+)?\.(jsonl|csv|parquet)(\.\w+)?$)/, `-g${run.generation}`);
    const { others } = opened.counts;
    const summary = { key, rows: others, bytes: bytes.length, crc32: formatCrc32(crc32(bytes)) };
    if (others > 0 && !(await hasSameContents(opened, summary, bytes, { signal, onRow })))
      throw new ErasureMismatch(
        `${destination.nameOf(file.key)} cannot be written again with the same rows. Nothing was published.`,
      );
    const before = run.rewritten?.find(({ replaces }) => replaces === file.key);
    if (!before && (await destination.isTaken(key, signal))) return await recorder.reserveGeneration(runId);
    const planned = await recorder.planEarlierFile(runId, run.generation, {
      replaces: file.key,
      file: others === 0 ? null : { ...summary, generation: file.generation },
    });
    const rewritten = planned.rewritten?.find(({ replaces }) => replaces === file.key)?.file;
    if (!rewritten) return planned;
    if (rewritten.crc32 !== summary.crc32) return await recorder.reserveGeneration(runId);
    const type = 'application/octet-stream';
    if (!(await destination.putObject(key, type, bytes, signal)))
      return await recorder.recordTakenRejectedKey(runId, run.generation, key);
    return planned;
  } finally {
    memory.close();
    opened.location.close();
  }
}

/** Whether rewritten bytes have the other rows of the file, as the readers of `verify` read both. */
async function hasSameContents(
  { rows, rowsOf }: OpenedEarlierFile,
  file: Pick<EarlierFile, 'key' | 'rows' | 'bytes'>,
  bytes: Buffer,
  { signal, onRow }: { readonly signal: AbortSignal; readonly onRow: () => void },
): Promise<boolean> {
  const written = rowsOf(file, bytes);
  if (isRejectedFile(file)) return (await rows.rejected(signal)).bytes.equals(bytes);
  return (await rows.contents(signal, onRow)) === (await written.contents(signal, onRow));
}

/** Encodes the rows that stay of a file, in the format of its config. */
async function encodeRows(
  { dependencies, signal }: OpenedCall,
  { rows, columns, location }: OpenedEarlierFile,
  memory: MemoryReservation,
): Promise<Buffer> {
  const { encoders, settings } = dependencies;
  const encoder = encoders.fileEncoder(location.encoding, columns);
  const { grouping, blockBytes } = encoder;
  const blocks = rows.blocks({ after: null, until: null }, { blockBytes, signal, memory });
  const blocksInFlight = settings.EXPORTD_ENCODER_THREADS;
  const encoded = encodeBlocks(blocks, { encoder: grouping ?? encoder, memory, blocksInFlight });
  const assembly = encoder.assemble([]);
  const parts: Buffer[] = [];
  try {
    for await (const { block, release } of grouping
      ? joinEncodedBlocks(encoded, grouping, memory)
      : encoded) {
      const bytes = await assembly.append(block);
      memory.reserveEncoded(bytes.length);
      parts.push(bytes);
      release();
    }
    parts.push(await assembly.finish());
    return Buffer.concat(parts);
  } finally {
    assembly.close();
  }
}
