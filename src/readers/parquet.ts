import { type FileHandle, writeFile } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  type AsyncBuffer,
  type FileMetaData,
  parquetMetadata,
  type ParquetParsers,
  parquetRead,
} from 'hyparquet';
import { bounds, boundText } from '../config/bounds.ts';
import { checkFooter, InvalidParquet, unpackPages } from '../encoding/parquet/check_pages.ts';
import {
  type ComparedColumn,
  FileUnreadable,
  KeysMissing,
  type RowShape,
  type ComparedRow,
  withoutKey,
} from './row.ts';
import { digestJson, digestText, type ValueDigest } from './value_digest.ts';
import { openTemporaryFile } from './temporary_file.ts';

/**
 * Reads rows of a Parquet file. Because the footer is at the end, the file is first stored as a temporary file.
 * Memory holds one column of a row group, and of the other compared columns what is compared: digests of long values.
 * @throws FileUnreadable, and errors of `chunks`
 */
export async function* readParquet(
  chunks: AsyncIterable<Buffer>,
  shape: RowShape,
): AsyncGenerator<ComparedRow> {
  const handle = await openTemporaryFile();
  try {
    await writeFile(handle, chunks);
    const { size } = await handle.stat();
    const metadata = await readMetadata(handle, size);
    const file = { handle, size, metadata };
    for (const group of metadata.row_groups)
      for (let rowStart = 0; rowStart < Number(group.num_rows); rowStart += rowsAtOnce(shape))
        yield* readRange(file, group, shape, rowStart);
  } finally {
    await handle.close();
  }
}

/** A file on disk and its metadata, which were checked. */
interface OpenFile {
  readonly handle: FileHandle;
  readonly size: number;
  readonly metadata: FileMetaData;
}

type RowGroup = FileMetaData['row_groups'][number];

/** Values in memory. A row group of a few columns is read at once. */
const maxValues = 2_000_000;
const rowsAtOnce = ({ columns }: RowShape): number => Math.ceil(maxValues / (columns.length + 2));

const invalidParquet = (why: string): FileUnreadable =>
  new FileUnreadable(`it is not valid Parquet (${why})`);

/** The length of the metadata and the magic number. */
const tailLength = 8;

/** Reads the metadata, whose size the file states. */
async function readMetadata(handle: FileHandle, size: number): Promise<FileMetaData> {
  const tail = await readBytes(handle, Math.max(0, size - tailLength), size);
  const length = tail.length < tailLength ? 0 : tail.readUInt32LE(0);
  if (length > bounds.parquetFooter.max)
    throw invalidParquet(`its footer has more than ${boundText(bounds.parquetFooter)}`);
  if (length > size - tailLength) throw invalidParquet('its footer is longer than the file');
  const footer = await readBytes(handle, size - tailLength - length, size);
  const metadata = await decoding(() => {
    checkFooter(footer.subarray(0, length));
    return parquetMetadata(footer, { parsers });
  });
  if (
    metadata.schema
      .slice(1)
      .some(({ num_children, repetition_type }) => (num_children ?? 0) > 0 || repetition_type === 'REPEATED')
  )
    throw invalidParquet('it has nested columns');
  return metadata;
}

/** Reads rows of a row group, one column after the other. */
async function* readRange(
  { handle, size, metadata }: OpenFile,
  group: RowGroup,
  shape: RowShape,
  rowStart: number,
): AsyncGenerator<ComparedRow> {
  const rows = Number(group.num_rows);
  if (!(rows <= bounds.parquetRows.max))
    throw invalidParquet(`a row group has more than ${boundText(bounds.parquetRows)} rows`);
  const rowEnd = Math.min(rows, rowStart + rowsAtOnce(shape));
  const readColumn = async (name: string): Promise<readonly unknown[] | undefined> => {
    const chunks = group.columns.filter(({ meta_data }) => meta_data?.path_in_schema[0] === name);
    const [chunk] = chunks;
    if (!chunk?.meta_data) return undefined;
    if (chunks.length > 1) throw invalidParquet('it has a column twice');
    const { codec } = chunk.meta_data;
    const element = metadata.schema.find((column) => column.name === name);
    const pages = { current: new Map<number, Uint8Array>() };
    const file: AsyncBuffer = {
      byteLength: size,
      slice: async (start, end = size) => {
        const bytes = await readBytes(handle, start, end);
        pages.current = unpackPages(bytes, {
          values: rows,
          codec,
          levelBits: [0, element?.repetition_type === 'OPTIONAL' ? 1 : 0],
        });
        return bytes.buffer as ArrayBuffer;
      },
    };
    const unpacked = (bytes: Uint8Array): Uint8Array => {
      const page = pages.current.get(bytes.byteOffset);
      if (!page) throw invalidParquet('its pages overlap');
      pages.current.delete(bytes.byteOffset);
      return page;
    };
    let values: readonly unknown[] = [];
    // One row group with one column, because the library goes through all of them.
    const only = { ...metadata, num_rows: group.num_rows, row_groups: [{ ...group, columns: [chunk] }] };
    await decoding(() =>
      parquetRead({
        file,
        metadata: only,
        columns: [name],
        compressors: { [codec]: unpacked },
        parsers,
        rowStart,
        rowEnd,
        rowFormat: 'object',
        onComplete: (read: readonly Row[]) => {
          values = read.map((row) => row[name]);
        },
      }),
    );
    return values;
  };

  const keys = shape.id === null ? [] : [await readColumn('_inserted_at'), await readColumn(shape.id)];
  const columns: (readonly ValueDigest[] | undefined)[] = [];
  for (const column of shape.columns)
    columns.push((await readColumn(column.name))?.map((value) => digestOf(value, column)));
  // Without columns, one is read to count the rows.
  if (shape.id === null && columns.length === 0) await readColumn(metadata.schema[1]?.name ?? '');
  const [insertedAts, ids] = keys;
  for (let index = 0; index < rowEnd - rowStart; index += 1) {
    // The consumer may wait for nothing but promises.
    if (index % rowsPerTurn === 0) await nextTurn();
    const values = columns.map((column) => (column === undefined ? undefined : (column[index] ?? null)));
    if (shape.id === null) {
      yield withoutKey(values);
      continue;
    }
    const [inserted_at, id] = [insertedAts?.[index], ids?.[index]];
    if (typeof inserted_at !== 'string' || typeof id !== 'string')
      throw new KeysMissing(`a row has no _inserted_at or no ${shape.id}`);
    yield { inserted_at, id, values };
  }
}

/** Rows between two turns of the event loop. */
const rowsPerTurn = 2_000;

type Row = Readonly<Record<string, unknown>>;

/** A value as it is compared. */
function digestOf(value: unknown, { type }: ComparedColumn): ValueDigest {
  if (value === null || value === undefined) return null;
  const text = typeof value === 'string' ? value : scalarText(value);
  return type === 'json' ? digestJson(Buffer.from(text)) : digestText(text);
}

/** Formats numbers and booleans as PostgreSQL does; other types get a text that no value has. */
const scalarText = (value: unknown): string =>
  typeof value === 'bigint' || typeof value === 'number' || typeof value === 'boolean'
    ? Object.is(value, -0)
      ? '-0'
      : String(value)
    : typeof value;

const microsecondsPerDay = 86_400_000_000n;
/** The length of `2026-11-01`. */
const dayLength = 10;

const textOf = (bytes: Uint8Array | undefined): string | undefined =>
  bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8');

/** The times that exportd writes: from the year 0001, before 10000. In microseconds. */
const firstTime = BigInt(Date.parse('0001-01-01T00:00:00Z')) * 1_000n;
const endTime = BigInt(Date.parse('+010000-01-01T00:00:00Z')) * 1_000n;

/** Formats a time as in the other formats; another, of a file that is not exportd's, as microseconds since 1970. */
function timeOf(microseconds: bigint): string {
  if (microseconds < firstTime || microseconds >= endTime) return String(microseconds);
  const rest = ((microseconds % 1_000n) + 1_000n) % 1_000n;
  const date = new Date(Number((microseconds - rest) / 1_000n));
  return date.toISOString().replace('Z', `${String(rest).padStart(3, '0')}Z`);
}

/** Formats a date likewise; another as days since 1970. */
function dateOf(days: number): string {
  const time = BigInt(days) * microsecondsPerDay;
  return time < firstTime || time >= endTime ? String(days) : timeOf(time).slice(0, dayLength);
}

/** Parsers that keep microseconds and all digits of JSON, which the library's own parsers lose. */
const parsers: Partial<ParquetParsers> = {
  timestampFromMilliseconds: (milliseconds) => timeOf(milliseconds * 1_000n),
  timestampFromMicroseconds: timeOf,
  timestampFromNanoseconds: (nanoseconds) => timeOf(nanoseconds / 1_000n),
  dateFromDays: dateOf,
  stringFromBytes: textOf,
  jsonFromBytes: textOf,
};

/** Reads the bytes `[start, end)` of a file, which claims these numbers. They are the start of their buffer. */
async function readBytes(handle: FileHandle, start: number, end: number): Promise<Buffer> {
  const { size } = await handle.stat();
  if (!(start >= 0 && start <= end && end <= size)) throw invalidParquet('a part is outside of the file');
  if (end - start > bounds.parquetColumn.max)
    throw invalidParquet(`a column has more than ${boundText(bounds.parquetColumn)}`);
  const bytes = Buffer.allocUnsafeSlow(end - start);
  await handle.read(bytes, 0, bytes.length, start);
  return bytes;
}

/** Converts errors of the library, all of which concern the file. */
async function decoding<Result>(work: () => Promise<Result> | Result): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof FileUnreadable) throw error;
    if (error instanceof InvalidParquet) throw invalidParquet(error.message);
    const message =
      error instanceof Error && error.message.startsWith('parquet') ? error.message : 'damaged file';
    throw invalidParquet(message);
  }
}
