import { type FileHandle, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import {
  type AsyncBuffer,
  type Compressors,
  type FileMetaData,
  parquetMetadataAsync,
  type ParquetParsers,
  parquetRead,
} from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import {
  type ComparedColumn,
  digestJson,
  digestText,
  FileUnreadable,
  KeysMissing,
  type RowShape,
  type ValueDigest,
  type VerifiedRow,
  withoutKey,
} from '../row.ts';

/**
 * Creates a private file for writing and reading. Its name is deleted immediately, so the file disappears when the
 * handle is closed or the process ends.
 */
async function openTemporaryFile(): Promise<FileHandle> {
  const folder = await mkdtemp(join(tmpdir(), 'exportd-verify-'));
  try {
    return await open(join(folder, 'object'), 'wx+', 0o600);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/**
 * Reads rows of a Parquet file. Because the footer is at the end, the file is first stored as a temporary file.
 * Memory holds the compared columns of one row group.
 * @throws FileUnreadable, and errors of `chunks`
 */
export async function* readParquet(
  chunks: AsyncIterable<Buffer>,
  shape: RowShape,
): AsyncGenerator<VerifiedRow> {
  const handle = await openTemporaryFile();
  try {
    await handle.writeFile(chunks);
    const file = await bufferOf(handle);
    const metadata = await decoding(() => parquetMetadataAsync(file));
    let rowStart = 0;
    for (const { num_rows } of metadata.row_groups) {
      const rowEnd = rowStart + Number(num_rows);
      for (const row of await readRange(file, metadata, shape, { rowStart, rowEnd })) yield rowOf(row, shape);
      rowStart = rowEnd;
    }
  } finally {
    await handle.close();
  }
}

type Row = Readonly<Record<string, unknown>>;

async function readRange(
  file: AsyncBuffer,
  metadata: FileMetaData,
  shape: RowShape,
  range: { rowStart: number; rowEnd: number },
): Promise<readonly Row[]> {
  const key = shape.id === null ? [] : ['_inserted_at', shape.id];
  const requested = new Set([...key, ...shape.columns.map(({ name }) => name)]);
  const names = metadata.schema.slice(1).map(({ name }) => name);
  // Without requested columns, one column is read to count the rows.
  const columns = requested.size === 0 ? names.slice(0, 1) : names.filter((name) => requested.has(name));
  let rows: readonly Row[] = [];
  const onComplete = (read: readonly Row[]): void => void (rows = read);
  const options = { file, metadata, columns, compressors: decompressors, parsers, ...range };
  await decoding(() => parquetRead({ ...options, rowFormat: 'object', onComplete }));
  return rows;
}

function rowOf(row: Row, shape: RowShape): VerifiedRow {
  const values = shape.columns.map((column) => valueOf(row, column));
  if (shape.id === null) return withoutKey(values);
  const { _inserted_at: inserted_at, [shape.id]: id } = row;
  if (typeof inserted_at !== 'string' || typeof id !== 'string')
    throw new KeysMissing(`a row has no _inserted_at or no ${shape.id}`);
  return { inserted_at, id, values };
}

function valueOf(row: Row, { name, type }: ComparedColumn): ValueDigest | undefined {
  if (!(name in row)) return undefined;
  const value = row[name];
  if (value === null || value === undefined) return null;
  const text = typeof value === 'string' ? value : scalarText(value);
  return type === 'json' ? digestJson(Buffer.from(text)) : digestText(text);
}

/** Formats numbers and booleans as PostgreSQL does; other types get a text that no value has. */
const scalarText = (value: unknown): string =>
  typeof value === 'bigint' || typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : typeof value;

const microsecondsPerDay = 86_400_000_000n;
/** The length of `2026-11-01`. */
const dayLength = 10;

const textOf = (bytes: Uint8Array | undefined): string | undefined =>
  bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8');

/** The times that the other formats can represent: from the year 0001, before 10000. In microseconds. */
const firstTime = BigInt(Date.parse('0001-01-01T00:00:00Z')) * 1_000n;
const endTime = BigInt(Date.parse('+010000-01-01T00:00:00Z')) * 1_000n;

/** Formats a time as in the other formats; as microseconds since 1970 if they cannot represent it. */
function timeOf(microseconds: bigint): string {
  if (microseconds < firstTime || microseconds >= endTime) return String(microseconds);
  const rest = ((microseconds % 1_000n) + 1_000n) % 1_000n;
  const date = new Date(Number((microseconds - rest) / 1_000n));
  return date.toISOString().replace('Z', `${String(rest).padStart(3, '0')}Z`);
}

/** Formats a date likewise; as days since 1970 if the other formats cannot represent it. */
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

/** Node's decompressors are faster. */
const decompressors: Compressors = {
  ...compressors,
  GZIP: (bytes) => gunzipSync(bytes),
  ZSTD: (bytes) => zstdDecompressSync(bytes),
  BROTLI: (bytes) => brotliDecompressSync(bytes),
};

async function bufferOf(handle: FileHandle): Promise<AsyncBuffer> {
  const { size } = await handle.stat();
  return {
    byteLength: size,
    slice: async (start, end = size) => {
      const bytes = new Uint8Array(end - start);
      await handle.read(bytes, 0, bytes.length, start);
      return bytes.buffer;
    },
  };
}

/** Converts errors of the library, all of which concern the file. */
async function decoding<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    const message =
      Error.isError(error) && error.message.startsWith('parquet') ? error.message : 'damaged file';
    throw new FileUnreadable(`it is not valid Parquet (${message})`);
  }
}
