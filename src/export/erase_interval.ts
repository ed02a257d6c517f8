import { randomUUID } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import type { UploadedPart } from '../destination/destination.ts';
import { type Manifest, parseManifest } from '../destination/manifest.ts';
import type { Destination } from '../destination/open_destination.ts';
import type { EarlierFile } from '../domain/exported_files.ts';
import { haveSameRows, rowsOfFingerprint } from '../domain/fingerprint.ts';
import type { ReplacedRun } from '../domain/replaced_generation.ts';
import { type ExistingRun, exportedFingerprint, type RunSpec, sourceAfter } from '../domain/run_state.ts';
import { encodeBlocks, joinEncodedBlocks } from '../encoding/encode_blocks.ts';
import { formatCrc32 } from '../encoding/compression.ts';
import type { MemoryReservation } from '../encoding/memory.ts';
import type { ExportedColumn } from '../source/row_selection.ts';
import { openTemporaryFile } from '../verify/files/temporary_file.ts';
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
  for (const file of await filesToRewrite(call, erasure)) {
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

/** What files of earlier generations are read with. */
type EarlierDependencies = Pick<ExportDependencies, 'source' | 'readSelection' | 'openLocation'> & {
  readonly findGeneration: (
    generation: number,
  ) => Promise<Pick<RunSpec, 'config_version' | 'model'> | undefined>;
};

/** A published file that stays in a bucket, and as what. */
interface StayingFile {
  readonly file: EarlierFile;
  readonly as: 'kept' | 'earlier';
}

/** What stays in another bucket, as the manifest says that is still there. */
interface OtherBucket {
  /** Its config leads to the bucket. */
  readonly place: RunSpec;
  /** The generations that the manifest is of. */
  readonly from: readonly number[];
  readonly files: readonly StayingFile[];
}

/** @throws FileUnreadable when a generation stays in a bucket whose manifest does not name it, DestinationError */
export async function readOtherBuckets(
  { openLocation, findGeneration }: EarlierDependencies,
  { spec, earlier_generations: { elsewhere } }: ExistingRun,
  signal: AbortSignal,
): Promise<readonly OtherBucket[]> {
  const buckets: OtherBucket[] = [];
  // The newest manifest of a bucket names the files of the generations before it.
  for (const generation of elsewhere.toSorted((one, other) => other - one)) {
    if (buckets.some(({ from }) => from.includes(generation))) continue;
    const written = await findGeneration(generation);
    const place = written && { ...spec, ...written };
    const manifest = place && (await readManifest(await openLocation(place), place, signal));
    const from = manifest ? elsewhere.filter((one) => isNamed(manifest, one)) : [];
    if (!manifest || !from.includes(generation))
      throw new FileUnreadable(
        `generation ${generation} stays in another bucket without a manifest that names it, and was not searched. Delete it there by hand, or retry the run of the interval with {"allow_shrink": true}, which deletes it. Then repeat the erasure`,
      );
    const { files, rejected_file, kept, earlier } = manifest;
    const own = (file: Omit<EarlierFile, 'generation'> & { readonly generation?: number | undefined }) => ({
      ...{ key: file.key, rows: file.rows, bytes: file.bytes, crc32: file.crc32 },
      generation: file.generation ?? manifest.generation,
    });
    const as = manifest.model === 'persons' ? 'earlier' : 'kept';
    buckets.push({
      ...{ place, from },
      files: [
        ...files.map((file) => ({ file: own(file), as }) as const),
        ...(rejected_file ? [{ file: own(rejected_file), as: 'kept' } as const] : []),
        ...kept.map((file) => ({ file, as: 'kept' }) as const),
        ...earlier.map((file) => ({ file, as: 'earlier' }) as const),
      ],
    });
  }
  return buckets;
}

async function readManifest(
  location: Destination,
  spec: RunSpec,
  signal: AbortSignal,
): Promise<Manifest | undefined> {
  try {
    const found = await location.getManifest(location.manifestKey(spec), signal);
    return found.state === 'present' ? parseManifest(found.text) : undefined;
  } finally {
    location.close();
  }
}

const isNamed = ({ generation: own, files, kept, earlier }: Manifest, generation: number): boolean =>
  own === generation || [...files, ...kept, ...earlier].some((file) => file.generation === generation);

/** A file of an earlier generation, opened to be searched and written again. */
interface OpenedEarlierFile {
  /** Its rows, or lines of rejected rows. */
  readonly rows: PublishedRows;
  /** How many rows it has of erased persons, and others. */
  readonly counts: { readonly erased: number; readonly others: number };
  /** Reads rows from other bytes as from the file. */
  readonly rowsOf: (file: Pick<EarlierFile, 'key' | 'rows' | 'bytes'>, handle: FileHandle) => PublishedRows;
  readonly columns: readonly ExportedColumn[];
  /** Opened with the config that wrote it. */
  readonly writer: Destination;
  readonly nameOf: (key: string) => string;
  readonly close: () => void;
}

const isRejectedFile = ({ key }: Pick<EarlierFile, 'key'>): boolean => key.endsWith('-rejected.jsonl');

/**
 * Searches a file of an earlier generation. Its columns and its format are those of the config that wrote it.
 * @param place of what run its bucket is
 * @throws FileUnreadable when it has rows of the persons, and cannot be written again
 */
async function openEarlierFile(
  { source, readSelection, openLocation, findGeneration }: EarlierDependencies,
  { place, file, erased }: { place: RunSpec; file: EarlierFile; erased: ReadonlySet<string> },
  { signal, onRow }: { readonly signal: AbortSignal; readonly onRow: () => void },
): Promise<OpenedEarlierFile> {
  const written = await findGeneration(file.generation);
  const specOfFile = { ...place, ...written };
  const columns = source.columns(specOfFile.model, await readSelection(specOfFile));
  const writer = await openLocation(specOfFile);
  const location = await openLocation(place).catch((error: unknown) => {
    writer.close();
    throw error;
  });
  const close = (): void => {
    writer.close();
    location.close();
  };
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
    if (!written && found.erased_rows > 0)
      throw new FileUnreadable(
        `${location.nameOf(file.key)} of an earlier generation has rows of the persons, and cannot be written again: the journal does not know what wrote it. Retry the run of the interval with {"allow_shrink": true}, which deletes it, and repeat the erasure`,
      );
    return {
      ...{ rows, columns, writer, nameOf: location.nameOf, close },
      counts: { erased: found.erased_rows, others: found.rows - found.erased_rows },
      rowsOf: (one, handle) =>
        rowsIn(
          { ...published, ...one },
          () =>
            Promise.resolve({
              etag: undefined,
              bytes: one.bytes,
              chunks: chunksOf(handle, one.bytes),
              close: () => undefined,
            }),
          new Set(),
        ),
    };
  } catch (error) {
    close();
    throw error;
  }
}

/** Counts the rows of erased persons in files of earlier generations. @throws FileUnreadable, DestinationError */
export async function searchEarlierFiles(
  dependencies: EarlierDependencies,
  { place, files, erased }: { place: RunSpec; files: readonly StayingFile[]; erased: ReadonlySet<string> },
  reading: { readonly signal: AbortSignal; readonly onRow: () => void },
): Promise<number> {
  let found = 0;
  for (const { file } of files) {
    const { counts, close } = await openEarlierFile(dependencies, { place, file, erased }, reading);
    close();
    found += counts.erased;
  }
  return found;
}

/** A file that a run of an erasure writes again. */
interface FileToRewrite extends StayingFile {
  readonly place: RunSpec;
  /** Of a file that comes from another bucket: the generations that leave that. */
  readonly from: readonly number[] | null;
}

/**
 * The files of earlier generations that may have rows of erased persons, and all files of another bucket that has some: no run
 * writes there any more, so its files come to the bucket of the run, and its manifest and its objects can be deleted.
 */
async function filesToRewrite(
  { dependencies, progress, signal }: OpenedCall,
  { replaced: { run }, erased }: OpenedErasure,
): Promise<readonly FileToRewrite[]> {
  const place = run.spec;
  const files: FileToRewrite[] = stayingFiles(run).map((file) => ({ ...file, place, from: null }));
  const onRow = (): void => {
    progress.rows += 1;
  };
  const earlier = withGenerations(dependencies, run);
  for (const bucket of await readOtherBuckets(earlier, run, signal))
    if ((await searchEarlierFiles(earlier, { ...bucket, erased }, { signal, onRow })) > 0)
      files.push(...bucket.files.map((file) => ({ ...file, place: bucket.place, from: bucket.from })));
  return files;
}

const withGenerations = (dependencies: ExportDependencies, run: ExistingRun): EarlierDependencies => ({
  ...dependencies,
  findGeneration: (generation) => dependencies.recorder.findGeneration(run, generation),
});

/** The files of earlier generations in the bucket of a run. */
export const stayingFiles = ({
  earlier_generations: { earlier, kept },
}: Pick<ExistingRun, 'earlier_generations'>): readonly StayingFile[] => [
  ...earlier.map((file) => ({ file, as: 'earlier' }) as const),
  ...kept.map((file) => ({ file, as: 'kept' }) as const),
];

const chunkBytes = 1_024 * 1_024;

async function* chunksOf(handle: FileHandle, bytes: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes; at += chunkBytes)
    yield await readAt(handle, at, Math.min(chunkBytes, bytes - at));
}

async function readAt(handle: FileHandle, position: number, length: number): Promise<Buffer> {
  const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafeSlow(length), 0, length, position);
  if (bytesRead < length) throw new RangeError('A temporary file is shorter than what was written to it.');
  return buffer;
}

/**
 * Writes a file of an earlier generation again, without the rows of the persons; does nothing if it has none and stays where it is.
 * The temporary folder has its bytes until they are sent, and memory a part of them. Its checksum is recorded before that, so no
 * two attempts write different bytes under its key.
 * @returns the run, which has a new generation if other bytes were recorded, or if the key is taken
 * @throws ErasureMismatch, FileUnreadable
 */
async function rewriteEarlierFile(
  call: OpenedCall,
  { erased }: OpenedErasure,
  run: ExistingRun,
  { file, as, place, from }: FileToRewrite,
): Promise<ExistingRun> {
  const { dependencies, runId, destination, progress, signal } = call;
  const { recorder } = dependencies;
  const onRow = (): void => {
    progress.rows += 1;
  };
  const opened = await openEarlierFile(
    withGenerations(dependencies, run),
    { place, file, erased },
    { signal, onRow },
  );
  const memory = dependencies.memory.openReservation();
  try {
    const { erased: erasedRows, others } = opened.counts;
    if (erasedRows === 0 && from === null) return run;
    await using handle = await openTemporaryFile();
    const parts = isRejectedFile(file)
      ? [(await opened.rows.rejected(signal)).bytes]
      : encodeRows(call, opened, memory);
    const { bytes, sum } = await store(handle, parts);
    // What no version of a table names is deleted from its folder by VACUUM, unless its name begins with an underscore. What is
    // kept is not for readers of folders.
    const isOfTable = [destination, opened.writer].some((one) => one.table(run.spec.model) !== null);
    const isHidden =
      as === 'kept' ? isOfTable || destination.partitionColumns.length > 0 : isOfTable && from !== null;
    const folder = from === null ? folderOf(file.key) : folderIn(destination, run, file.key);
    const key = `${folder}${rewrittenName(file.key, run.generation, isHidden)}`;
    const replaces = from === null ? file.key : opened.nameOf(file.key);
    const summary = { key, rows: others, bytes, crc32: formatCrc32(sum) };
    const isCompared = others > 0 && !isRejectedFile(file);
    if (isCompared && !(await hasSameContents(opened, summary, handle, { signal, onRow })))
      throw new ErasureMismatch(
        `${opened.nameOf(file.key)} cannot be written again with the same rows. Nothing was published.`,
      );
    const before = run.rewritten?.find((one) => one.replaces === replaces);
    if (!before && (await destination.isTaken(key, signal))) return await recorder.reserveGeneration(runId);
    const planned = await recorder.planEarlierFile(runId, run.generation, {
      replaces,
      file: others === 0 ? null : { ...summary, generation: file.generation },
      ...(from && { moved: { from, as } }),
    });
    const rewritten = planned.rewritten?.find((one) => one.replaces === replaces)?.file;
    if (!rewritten) return planned;
    if (rewritten.crc32 !== summary.crc32) return await recorder.reserveGeneration(runId);
    if (!(await send(call, rewritten, handle, memory)))
      return await recorder.recordTakenRejectedKey(runId, run.generation, key);
    return planned;
  } finally {
    memory.close();
    opened.close();
  }
}

const folderOf = (key: string): string => key.slice(0, key.lastIndexOf('/') + 1);

/** The folder of a file from another bucket in the bucket of a run. */
function folderIn(destination: Destination, { spec, generation }: ExistingRun, key: string): string {
  const own = destination.fileKey(spec, { generation, range: null, file: null, mark: null }, 'jsonl');
  const event = key.split('/').find((segment) => segment.startsWith('event_partition='));
  return `${folderOf(own)}${event === undefined ? '' : `${event}/`}`;
}

/** The name of a file that is written again, `…-e7.parquet` by generation 7. Files of the generation itself have other names. */
const rewrittenName = (key: string, generation: number, isHidden: boolean): string => {
  const name = key
    .slice(folderOf(key).length)
    .replace(/(-e\d+)?(?=(\.\d+|-rejected)?\.(jsonl|csv|parquet)(\.\w+)?$)/, `-e${generation}`);
  return isHidden ? `_${name.replace(/^_/, '')}` : name;
};

/** Whether rewritten bytes have the other rows of the file, as the readers of `verify` read both. */
async function hasSameContents(
  { rows, rowsOf }: OpenedEarlierFile,
  file: Pick<EarlierFile, 'key' | 'rows' | 'bytes'>,
  handle: FileHandle,
  { signal, onRow }: { readonly signal: AbortSignal; readonly onRow: () => void },
): Promise<boolean> {
  const written = rowsOf(file, handle);
  return (await rows.contents(signal, onRow)) === (await written.contents(signal, onRow));
}

/** Writes bytes to a file. @returns how many, and their CRC-32 */
async function store(
  handle: FileHandle,
  parts: AsyncIterable<Buffer> | Iterable<Buffer>,
): Promise<{ readonly bytes: number; readonly sum: number }> {
  let [bytes, sum] = [0, 0];
  for await (const part of parts) {
    await handle.writeFile(part);
    bytes += part.length;
    sum = crc32(part, sum);
  }
  return { bytes, sum };
}

/**
 * Sends a file to its key, in parts if it is large. The parts of a killed attempt are of no use: their order of bytes is the same,
 * their upload is unknown.
 * @returns false if another object has the key
 */
async function send(
  { destination, signal }: OpenedCall,
  { key, bytes, crc32: sum }: EarlierFile,
  handle: FileHandle,
  memory: MemoryReservation,
): Promise<boolean> {
  const contentType = 'application/octet-stream';
  if (bytes <= destination.firstPartBytes)
    return destination.putObject(key, contentType, await readAt(handle, 0, bytes), signal);
  // An attempt that was killed may have sent it.
  const found = await destination.openObject(key, signal);
  if (found) {
    let written = 0;
    for await (const chunk of found.chunks) written = crc32(chunk, written);
    return formatCrc32(written) === sum;
  }
  await destination.abortUploadsOf(key, signal);
  const upload = await destination.createUpload(
    { key, contentType, upload_token: randomUUID(), resumable: false },
    signal,
  );
  try {
    const parts: UploadedPart[] = [];
    for (let at = 0; at < bytes;) {
      const number = parts.length + 1;
      const length = Math.min(upload.partBytes(number), bytes - at);
      memory.reserveEncoded(length);
      parts.push(await upload.putPart(number, await readAt(handle, at, length), signal));
      memory.releaseEncoded(length);
      at += length;
    }
    await upload.complete(parts, bytes, signal);
    return true;
  } catch (error) {
    await destination.abortUpload(key, upload.upload_id, signal).catch(() => undefined);
    throw error;
  }
}

/** Encodes the rows that stay of a file, in the format of its config. */
async function* encodeRows(
  { dependencies, signal }: OpenedCall,
  { rows, columns, writer }: OpenedEarlierFile,
  memory: MemoryReservation,
): AsyncGenerator<Buffer> {
  const { encoders, settings } = dependencies;
  const encoder = encoders.fileEncoder(writer.encoding, columns);
  const { grouping, blockBytes } = encoder;
  const blocks = rows.blocks({ after: null, until: null }, { blockBytes, signal, memory });
  const blocksInFlight = settings.EXPORTD_ENCODER_THREADS;
  const encoded = encodeBlocks(blocks, { encoder: grouping ?? encoder, memory, blocksInFlight });
  const assembly = encoder.assemble([]);
  try {
    for await (const { block, release } of grouping
      ? joinEncodedBlocks(encoded, grouping, memory)
      : encoded) {
      yield await assembly.append(block);
      release();
    }
    yield await assembly.finish();
  } finally {
    assembly.close();
  }
}
