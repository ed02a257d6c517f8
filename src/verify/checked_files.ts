import type { OpenObject } from '../destination/destination.ts';
import type { Manifest } from '../destination/manifest.ts';
import { fileSequences } from '../domain/exported_files.ts';
import type { Fingerprint } from '../domain/fingerprint.ts';
import { formatCrc32 } from '../encoding/compression.ts';
import type { Difference } from './compare_rows.ts';
import { mergedByKey } from '../readers/merge_rows.ts';
import { readForeignRows } from '../readers/foreign_rows.ts';
import { type Measure, measureChunks } from '../readers/read_rows.ts';
import type { FindingCollector } from './report.ts';
import {
  type ComparedRow,
  compareKeys,
  FileUnreadable,
  KeysMissing,
  keyText,
  type RowShape,
} from '../readers/row.ts';
import { maxSortableRows, readAll } from './ordered_rows.ts';
import { differingIndexes, type RowFingerprint, sumsOf } from './row_fingerprint.ts';
import type { BucketReader } from '../destination/bucket_reader.ts';
import { isErrorType } from '../destination/errors.ts';

/** A file of a manifest; those of earlier generations have neither a key range nor a fingerprint. */
type ManifestFile = Pick<Manifest['files'][number], 'key' | 'rows' | 'bytes' | 'crc32'> &
  Partial<Manifest['files'][number]>;

/** Totals of what was read of a manifest's files. */
interface ReadTotals {
  rows: number;
  bytes: number;
}

/** Dependencies for reading a manifest's files. */
export interface FileReadContext {
  readonly reader: BucketReader;
  readonly collector: FindingCollector;
  readonly totals: ReadTotals;
  readonly signal: AbortSignal;
  /** Whether the bucket's own rules may have deleted an object. */
  readonly isExpired: (key: string) => Promise<boolean>;
  /** Creates an empty fingerprint that is comparable with that of a file; null if files are not fingerprinted. */
  readonly createFingerprint: ((like: Fingerprint) => RowFingerprint) | null;
}

/**
 * Reads the rows of a manifest's files one after the other; files of several generations together, in the order of their
 * keys. Problems of a file are reported to the collector and end its rows.
 */
export const checkedRows = (
  reading: FileReadContext,
  files: readonly ManifestFile[],
  shape: RowShape,
): AsyncGenerator<ComparedRow> =>
  mergedByKey(fileSequences(files).map((sequence) => checkedSequence(reading, sequence, shape)));

async function* checkedSequence(
  reading: FileReadContext,
  files: readonly ManifestFile[],
  shape: RowShape,
): AsyncGenerator<ComparedRow> {
  for (const file of files) yield* checkedFile(reading, file, shape);
}

async function* checkedFile(
  { reader, collector, totals, signal, isExpired, createFingerprint }: FileReadContext,
  file: ManifestFile,
  shape: RowShape,
): AsyncGenerator<ComparedRow> {
  const name = reader.nameOf(file.key);
  const object = await reader.open(file.key, signal);
  if (!object) {
    if (await isExpired(file.key))
      collector.expired(`Expired: a lifecycle rule of the bucket deleted ${name}.`);
    else
      collector.add(
        'file_missing',
        name,
        `The object does not exist. According to the manifest it has ${file.rows} rows.`,
      );
    return;
  }
  if (object.bytes !== file.bytes) {
    // Not read: it may be a bomb, and its rows are not those of the manifest.
    object.close();
    collector.add(
      'file_changed',
      name,
      `The object has ${object.bytes} bytes, expected ${file.bytes}. It was not read; according to the manifest it has ${file.rows} rows.`,
    );
    return;
  }
  const measure: Measure = { bytes: 0, crc: 0 };
  let rows = 0;
  let hasKeys = true;
  let outside = 0;
  let unreadable: string | undefined;
  const fingerprint =
    shape.id !== null && file.fingerprint ? createFingerprint?.(file.fingerprint) : undefined;
  try {
    for await (const row of readForeignRows(
      { foreign: reader.foreign, signal },
      file,
      measureChunks(object.chunks, measure),
      shape,
    )) {
      rows += 1;
      if (shape.id !== null && isOutside(row, file)) outside += 1;
      await fingerprint?.add(row);
      yield row;
    }
  } catch (error) {
    if (isErrorType(error, 'ObjectReplaced')) unreadable = 'it was replaced or deleted while it was read';
    else if (error instanceof KeysMissing && !file.fingerprint)
      // An earlier generation may have had another query.
      hasKeys = false;
    else if (error instanceof FileUnreadable) unreadable = error.message;
    else throw error;
  }
  totals.rows += rows;
  totals.bytes += object.bytes;
  const problem = await findChange(reader, file, object, measure, signal);
  if (problem !== undefined) collector.add('file_changed', name, problem);
  if (unreadable !== undefined)
    collector.add('file_unreadable', name, `The object cannot be read after row ${rows}: ${unreadable}.`);
  else if (!hasKeys)
    collector.note(`The rows of ${name} were not compared, because it does not contain their keys.`);
  else if (rows !== file.rows)
    collector.add('file_rows', name, `The object has ${rows} rows, expected ${file.rows}.`);
  else if (fingerprint && file.fingerprint) {
    const differing = differingIndexes(await fingerprint.sums(), sumsOf(file.fingerprint)).length;
    if (differing > 0)
      collector.add(
        'file_fingerprint',
        name,
        `The rows of the object differ from its fingerprint in ${differing} buckets.`,
      );
  }
  if (outside > 0)
    collector.add(
      'file_order',
      name,
      `Rows of the object are outside the key range in the manifest.`,
      outside,
    );
}

const isOutside = (row: ComparedRow, { first = null, last = null }: ManifestFile): boolean =>
  (first !== null && compareKeys(row, first) < 0) || (last !== null && compareKeys(row, last) > 0);

/** Describes how the bytes of an object differ from its manifest; undefined if they do not. */
async function findChange(
  reader: BucketReader,
  file: ManifestFile,
  object: OpenObject,
  measured: Measure,
  signal: AbortSignal,
): Promise<string | undefined> {
  // Reading rows may have stopped before the end of the object.
  const complete = measured.bytes === object.bytes ? measured : await measureObject(reader, file.key, signal);
  const crc32 = complete && formatCrc32(complete.crc);
  if (crc32 === file.crc32) return undefined;
  return crc32 === undefined
    ? 'The object was deleted while it was read.'
    : `The object has the CRC-32 ${crc32}, expected ${file.crc32}.`;
}

async function measureObject(
  reader: BucketReader,
  key: string,
  signal: AbortSignal,
): Promise<Measure | undefined> {
  const object = await reader.open(key, signal);
  if (!object) return undefined;
  const measure: Measure = { bytes: 0, crc: 0 };
  const chunks = measureChunks(object.chunks, measure);
  while (!(await chunks.next()).done);
  return measure;
}

/** The files of earlier generations that a manifest still names. */
export const earlierFilesOf = ({ earlier, kept }: Manifest): Manifest['kept'] => [...earlier, ...kept];

/**
 * Reads the files of earlier generations, and yields the rows that readers of the manifest need. They may have rows that
 * the source no longer has, and rows that the manifest's own files have too: neither is a problem.
 * @param id the column that identifies rows; null if it is not needed
 */
export async function* earlierRows(
  reading: FileReadContext,
  { earlier, kept }: Manifest,
  id: string | null,
): AsyncGenerator<ComparedRow> {
  const separate = { ...reading, totals: { rows: 0, bytes: 0 } };
  const rowsOf = (files: readonly ManifestFile[], column: string | null) =>
    checkedSequence(separate, files, { id: column, columns: [] });
  yield* rowsOf(earlier, id);
  await readAll(rowsOf(kept, null));
}

/**
 * Passes differences through, except missing rows that are in files of earlier generations. Memory holds the missing
 * rows; more than `maxSortableRows` are not searched for.
 */
export async function* exceptEarlier(
  differences: AsyncIterable<Difference>,
  earlier: AsyncIterable<ComparedRow>,
): AsyncGenerator<Difference> {
  const missing = new Map<string, ComparedRow[]>();
  let count = 0;
  for await (const difference of differences) {
    if (difference.kind !== 'missing' || count >= maxSortableRows) yield difference;
    else {
      const key = keyText(difference.row);
      missing.set(key, [...(missing.get(key) ?? []), difference.row]);
      count += 1;
    }
  }
  for await (const row of earlier) missing.delete(keyText(row));
  for (const rows of missing.values()) for (const row of rows) yield { kind: 'missing', row };
}
