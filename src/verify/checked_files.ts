import { DestinationError } from '../destination/destination.ts';
import type { Manifest } from '../destination/manifest.ts';
import type { BucketReader, OpenObject } from '../destination/s3/bucket_reader.ts';
import { formatCrc32 } from '../encoding/format_crc32.ts';
import { measuring, readRows, type Measure } from './files/read_rows.ts';
import { compareKeys, FileUnreadable, type RowShape, type VerifiedRow } from './row.ts';
import type { FindingCollector } from './finding_collector.ts';

type ManifestFile = Manifest['files'][number];

/** What of a manifest's files was read. */
export interface ReadTotals {
  rows: number;
  bytes: number;
}

/** What reading a manifest's files needs. */
export interface FileReading {
  readonly reader: BucketReader;
  readonly collector: FindingCollector;
  readonly totals: ReadTotals;
  readonly signal: AbortSignal;
}

/** The rows of a manifest's files, one after the other; whatever is wrong with a file is tallied, its rows then end. */
export async function* checkedRows(
  reading: FileReading,
  files: readonly ManifestFile[],
  shape: RowShape,
): AsyncGenerator<VerifiedRow> {
  for (const file of files) yield* checkedFile(reading, file, shape);
}

async function* checkedFile(
  { reader, collector, totals, signal }: FileReading,
  file: ManifestFile,
  shape: RowShape,
): AsyncGenerator<VerifiedRow> {
  const name = reader.nameOf(file.key);
  const object = await reader.open(file.key, signal);
  if (!object) {
    collector.add(
      'file_missing',
      name,
      `The object is not there; the manifest says that it has ${file.rows} rows.`,
    );
    return;
  }
  const measure: Measure = { bytes: 0, crc: 0 };
  let rows = 0;
  let outside = 0;
  let unreadable: string | undefined;
  try {
    for await (const row of readRows(file.key, measuring(object.chunks, measure), shape)) {
      rows += 1;
      if (shape.id !== null && isOutside(row, file)) outside += 1;
      yield row;
    }
  } catch (error) {
    if (isReplaced(error)) unreadable = 'it was replaced or deleted while it was read';
    else if (error instanceof FileUnreadable) unreadable = error.message;
    else throw error;
  }
  totals.rows += rows;
  totals.bytes += object.bytes;
  const problem = await changeOf(reader, file, object, measure, signal);
  if (problem !== undefined) collector.add('file_changed', name, problem);
  if (unreadable !== undefined)
    collector.add(
      'file_unreadable',
      name,
      `The object cannot be read behind its row ${rows}: ${unreadable}.`,
    );
  else if (rows !== file.rows)
    collector.add('file_rows', name, `The object has ${rows} rows; the manifest says ${file.rows}.`);
  if (outside > 0)
    collector.add(
      'file_order',
      name,
      `Rows of the object lie outside the keys that the manifest gives it.`,
      outside,
    );
}

const isOutside = (row: VerifiedRow, { first, last }: ManifestFile): boolean =>
  (first !== null && compareKeys(row, first) < 0) || (last !== null && compareKeys(row, last) > 0);

/** How an object differs from what its manifest says of its bytes; undefined when it does not. */
async function changeOf(
  reader: BucketReader,
  file: ManifestFile,
  object: OpenObject,
  measured: Measure,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (object.bytes !== file.bytes)
    return `The object has ${object.bytes} bytes; the manifest says ${file.bytes}.`;
  // Rows may have ended, or become unreadable, before the bytes did.
  const whole = measured.bytes === object.bytes ? measured : await measureObject(reader, file.key, signal);
  const crc32 = whole && formatCrc32(whole.crc);
  if (crc32 === file.crc32) return undefined;
  return `The object has the CRC-32 ${crc32 ?? 'of nothing: it is gone'}; the manifest says ${file.crc32}.`;
}

async function measureObject(
  reader: BucketReader,
  key: string,
  signal: AbortSignal,
): Promise<Measure | undefined> {
  const object = await reader.open(key, signal);
  if (!object) return undefined;
  const measure: Measure = { bytes: 0, crc: 0 };
  const passing = measuring(object.chunks, measure);
  while (!(await passing.next()).done);
  return measure;
}

const isReplaced = (error: unknown): boolean =>
  error instanceof DestinationError && error.type === 'ObjectReplaced';
