import { isUtf8 } from 'node:buffer';
import { type Fingerprint, rowsOfFingerprint, subtractFingerprint } from '../domain/fingerprint.ts';
import { type ExportedColumn, fileColumns } from '../source/row_selection.ts';
import { fieldOf } from '../source/binary_tuple.ts';
import type { FingerprintPlan } from '../source/source.ts';
import { replacedValue } from '../source/replaced_values.ts';
import {
  assembleBrotli,
  assembleText,
  concatenableCompression,
  libraryVersion,
  nameWithLevel,
  textStateOf,
} from './compression.ts';
import { appendRows, appendText, type AppendValue, type TextFormat, textFormats } from './text_formats.ts';
import type {
  EncodingOptions,
  EncodingResult,
  EncodingTask,
  FileEncoder,
  RejectedRow,
  TextCompression,
} from './encoder.ts';
import { fingerprintBlock, startFingerprint } from './fingerprint_rows.ts';
import { createGrowingBuffer, releaseMemory } from './memory.ts';
import type { encodeFragment } from './parquet/row_group.ts';
import type { ParquetOptions } from './parquet_encoder.ts';
import {
  InvalidText,
  MalformedBlock,
  rowIdOf,
  type Rows,
  UnencodableRow,
  type UnrepresentableValue,
  withoutInvalidText,
} from './rows.ts';

type TextOptions = Exclude<EncodingOptions, { file_format: 'Parquet' }>;

const jsonLines = textFormats.JSONLines;

/** Block size in bytes of rows, small enough to keep two threads busy. */
const blockBytes = 2 * 1024 * 1024;

const compressedNames: Readonly<Record<TextCompression, { extension: string; contentType: string }>> = {
  gzip: { extension: 'gz', contentType: 'application/gzip' },
  zstd: { extension: 'zst', contentType: 'application/zstd' },
  brotli: { extension: 'br', contentType: 'application/x-brotli' },
};

/** The extension of files. Parquet compresses inside the file, so its extension does not depend on the compression. */
export function fileExtension({
  file_format,
  compression,
}: Pick<EncodingOptions, 'file_format' | 'compression'>): string {
  if (file_format === 'Parquet') return 'parquet';
  const { extension } = textFormats[file_format];
  return compression === null
    ? extension
    : `${extension}.${compressedNames[compression as TextCompression].extension}`;
}

/** The encoder of text files, without the encoding of blocks, which runs in threads. */
export function textEncoder(
  { file_format, compression, compression_level }: TextOptions,
  columns: readonly ExportedColumn[],
): Omit<FileEncoder, 'encode' | 'grouping'> {
  const { contentType, ...text } = textFormats[file_format];
  const extension = fileExtension({ file_format, compression });
  const header = text.header(columns);
  const format = file_format.toLowerCase();
  if (compression === null)
    return {
      identity: `${format}/1`,
      extension,
      contentType,
      resumable: true,
      blockBytes,
      assemble: (resumed) => assembleText(concatenableCompression(null), header, resumed),
    };
  const compressed = {
    identity: `${format}+${nameWithLevel(compression, compression_level)}/1${libraryVersion(compression)}`,
    extension,
    contentType: compressedNames[compression].contentType,
    blockBytes,
  };
  if (compression === 'brotli')
    return { ...compressed, resumable: false, assemble: () => assembleBrotli(header, compression_level) };
  return {
    ...compressed,
    resumable: true,
    assemble: (resumed) =>
      assembleText(concatenableCompression(compression, compression_level), header, resumed),
  };
}

const microsecondsPerDay = 86_400_000_000n;
const millisecondsPerDay = 86_400_000;
/** The Gregorian calendar repeats after 400 years. */
const daysPerCycle = 146_097n;
const infinity = 2n ** 63n - 1n;
const millisecondsTo2000 = Date.UTC(2000, 0, 1);

/**
 * Formats any binary timestamp (microseconds since 2000-01-01 UTC, int64) as PostgreSQL prints it in UTC: `infinity`,
 * `10000-01-01 00:00:00+00`, `0001-12-31 00:00:00.5+00 BC`.
 */
export function formatPostgresqlTime(block: Buffer, at: number): string {
  const time = block.readBigInt64BE(at);
  if (time === infinity) return 'infinity';
  if (time === -infinity - 1n) return '-infinity';
  const day = floorDivide(time, microsecondsPerDay);
  const cycle = floorDivide(day, daysPerCycle);
  // The same calendar day within the 400 years from 2000, which a Date can represent.
  const date = new Date(millisecondsTo2000 + Number(day - cycle * daysPerCycle) * millisecondsPerDay);
  const year = date.getUTCFullYear() + Number(cycle) * 400;
  const yearText = String(year > 0 ? year : 1 - year).padStart(4, '0');
  return `${yearText}${date.toISOString().slice(4, 10)} ${timeOfDay(time - day * microsecondsPerDay)}+00${year > 0 ? '' : ' BC'}`;
}

function timeOfDay(microseconds: bigint): string {
  const clock = new Date(Number(microseconds / 1_000n)).toISOString().slice(11, 19);
  const fraction = (microseconds % 1_000_000n).toString().padStart(6, '0').replace(/0+$/, '');
  return fraction === '' ? clock : `${clock}.${fraction}`;
}

const floorDivide = (value: bigint, by: bigint): bigint => (value - (((value % by) + by) % by)) / by;

/** Appends a date as in JSON lines; for infinities and years outside 0001 to 9999, a description. */
const appendAnyDate: AppendValue = (target, block, start, end) => {
  if (jsonLines.append.date(target, block, start, end)) return true;
  const days = block.readInt32BE(start);
  const text = Buffer.from(
    days === 0x7fff_ffff ? 'infinity' : days === -0x8000_0000 ? '-infinity' : `${days} days from 2000-01-01`,
  );
  return appendText(target, text, 0, text.length);
};

/** Appends a time as in JSON lines, or as PostgreSQL prints it outside the years 0001 to 9999. */
const appendAnyTime: AppendValue = (target, block, start, end) => {
  if (jsonLines.append.timestamp(target, block, start, end)) return true;
  const text = Buffer.from(formatPostgresqlTime(block, start));
  return appendText(target, text, 0, text.length);
};

/** Appends a value, or a note about one that was replaced. */
const appendUnlessReplaced =
  (append: AppendValue): AppendValue =>
  (target, block, start, end) => {
    const replaced = replacedValue(block, start, end);
    if (!replaced) return append(target, block, start, end);
    const text = Buffer.from(`left out: ${replaced.reason}`);
    return appendText(target, text, 0, text.length);
  };

/** JSON lines that can represent every row. */
const lenientJsonLines: TextFormat = {
  ...jsonLines,
  notesReplaced: true,
  append: {
    uuid: appendUnlessReplaced(jsonLines.append.uuid),
    timestamp: appendUnlessReplaced(appendAnyTime),
    date: appendUnlessReplaced(appendAnyDate),
    bigint: appendUnlessReplaced(jsonLines.append.bigint),
    integer: appendUnlessReplaced(jsonLines.append.integer),
    double: appendUnlessReplaced(jsonLines.append.double),
    boolean: appendUnlessReplaced(jsonLines.append.boolean),
    text: appendUnlessReplaced(jsonLines.append.text),
    json: appendUnlessReplaced(jsonLines.append.json),
  },
};

/** Describes a row that the format cannot represent. Bytes that are not UTF-8 become U+FFFD. */
function rejectedRow(
  rows: Pick<Rows, 'block' | 'columns'>,
  { rowAt, column, reason }: UnrepresentableValue,
): RejectedRow {
  const { block, columns } = rows;
  const { start, end } = fieldOf(block, rowAt, columns.length - 1);
  const tuple = block.subarray(rowAt, Math.max(start, end));
  const line = createGrowingBuffer(tuple.length + 1_024);
  appendRows(line, { block: tuple, rows: 1, columns }, lenientJsonLines, () => undefined);
  const row = line.bytes.toString('utf8', 0, line.length - 1);
  return { id: rowIdOf(rows, rowAt), column, reason, row };
}

const initialSize = 4 * 1024 * 1024;
/** A larger buffer is released after the block. */
const maxRetainedSize = 16 * 1024 * 1024;

let text = createGrowingBuffer(initialSize);

/**
 * Encodes a block as text and compresses it, except for brotli, which compresses whole files.
 * @returns null when a value is not UTF-8: checking the whole text is fast, but does not find the value
 * @throws MalformedBlock, and errors of `onUnrepresentable`
 */
function encodeText(
  { file_format, compression, compression_level }: TextOptions,
  rows: Rows,
  onUnrepresentable: (bad: UnrepresentableValue) => void,
): Pick<EncodingResult, 'bytes' | 'rows' | 'state'> | null {
  text.length = 0;
  try {
    const appended = appendRows(text, rows, textFormats[file_format], onUnrepresentable);
    const written = text.bytes.subarray(0, text.length);
    if (!isUtf8(written)) return null;
    const bytes = compressed(compression, compression_level, written);
    const state = compression === 'brotli' ? null : textStateOf(written);
    return { bytes, rows: appended, state };
  } finally {
    if (text.bytes.length > maxRetainedSize) {
      releaseMemory(text.bytes);
      text = createGrowingBuffer(initialSize);
    }
  }
}

/** Returns a buffer that can be transferred to another thread. The text buffer is reused for the next block. */
function compressed(
  compression: TextOptions['compression'],
  level: TextOptions['compression_level'],
  written: Buffer,
): Uint8Array<ArrayBuffer> {
  if (compression === null || compression === 'brotli') return new Uint8Array(written);
  const bytes = concatenableCompression(compression, level).compress(written);
  const copy = new Uint8Array(bytes);
  // zlib returns the start of its output buffer.
  releaseMemory(new Uint8Array(bytes.buffer));
  return copy;
}

/** A rejected row and its tuple. */
interface Rejection {
  readonly row: RejectedRow;
  readonly block: Buffer;
  readonly rowAt: number;
}

type EncodedRows = Pick<EncodingResult, 'bytes' | 'rows' | 'state'> & {
  readonly rejections: readonly Rejection[];
  /** That of the rows in `bytes`, where the format computes it. */
  readonly fingerprint?: Fingerprint;
};

/**
 * Encodes the block of a task. A block of a Parquet file becomes a fragment of a row group: `joinBlocks` joins them.
 * The modules of Parquet are loaded with its first block, because threads of text formats start faster without them.
 * @throws UnencodableRow for a row that the format cannot represent, unless `on_bad_row` is `reject`
 * @throws MalformedBlock
 */
export async function encodeBlock({
  options,
  columns,
  rows,
  block,
  fingerprint: plan,
}: Omit<EncodingTask, 'id'>): Promise<EncodingResult> {
  const input = { block: Buffer.from(block.buffer, block.byteOffset, block.byteLength), rows, columns };
  const { rejections, ...encoded } =
    options.file_format === 'Parquet'
      ? encodeAsParquet((await import('./parquet/row_group.ts')).encodeFragment, options, input, plan)
      : encodeAsText(options, input);
  const rejected = startFingerprint(plan);
  for (const rejection of rejections) rejected.add(rejection.block, rejection.rowAt, rejection.rowAt + 1);
  const rejected_fingerprint = rejected.result();
  const fingerprint =
    encoded.fingerprint ?? subtractFingerprint(fingerprintBlock(input.block, plan), rejected_fingerprint);
  if (rowsOfFingerprint(fingerprint) !== encoded.rows || encoded.rows + rejections.length !== rows)
    throw new MalformedBlock(
      `A block of ${rows} rows has ${encoded.rows} encoded and ${rejections.length} rejected ones.`,
    );
  const rejected_rows = rejections.toSorted((one, other) => compareKeys(one, other, plan));
  return { ...encoded, fingerprint, rejected_fingerprint, rejected: rejected_rows.map(({ row }) => row) };
}

/** The order of rows in a block. Rows with invalid text are found first, and in another block than the others. */
function compareKeys(one: Rejection, other: Rejection, { inserted_at, id }: FingerprintPlan): number {
  const [oneTime, otherTime] = [timeOf(one, inserted_at), timeOf(other, inserted_at)];
  if (oneTime !== otherTime) return oneTime < otherTime ? -1 : 1;
  return Buffer.compare(bytesOf(one, id), bytesOf(other, id));
}

const timeOf = ({ block, rowAt }: Rejection, field: number): bigint =>
  block.readBigInt64BE(fieldOf(block, rowAt, field).start);

function bytesOf({ block, rowAt }: Rejection, field: number): Buffer {
  const { start, end } = fieldOf(block, rowAt, field);
  return block.subarray(start, end);
}

/** The positions in the file of the columns by which rows are sorted. The order of text depends on the database. */
function sortedColumns(columns: readonly ExportedColumn[], { inserted_at, id }: FingerprintPlan): number[] {
  const shown = fileColumns(columns);
  const keys = [columns[inserted_at], columns[id]?.type === 'uuid' ? columns[id] : undefined];
  const positions = keys.map((column) => (column ? shown.indexOf(column) : -1));
  const end = positions.indexOf(-1);
  return end < 0 ? positions : positions.slice(0, end);
}

function encodeAsParquet(
  encode: typeof encodeFragment,
  options: ParquetOptions,
  input: Rows,
  plan: FingerprintPlan,
): EncodedRows {
  try {
    return encodeValidText(encode, options, input, plan);
  } catch (error) {
    if (!(error instanceof InvalidText)) throw error;
  }
  const invalid: Rejection[] = [];
  const valid = withoutInvalidText(input, throwOrReject(options, input, invalid));
  const others = encodeValidText(encode, options, valid, plan);
  return { ...others, rejections: [...invalid, ...others.rejections] };
}

/** @throws InvalidText */
function encodeValidText(
  encode: typeof encodeFragment,
  options: ParquetOptions,
  input: Rows,
  plan: FingerprintPlan,
): EncodedRows {
  const { columns } = input;
  const rejections: Rejection[] = [];
  const sum = startFingerprint(plan);
  const { bytes, fragment } = encode(
    input.block,
    input.rows,
    columns,
    options,
    throwOrReject(options, input, rejections),
    { sorted: sortedColumns(columns, plan), fingerprint: { sum, plan } },
  );
  return {
    bytes: new Uint8Array(bytes.buffer),
    rows: fragment.rows,
    rejections,
    state: fragment,
    fingerprint: sum.result(),
  };
}

function encodeAsText(options: TextOptions, input: Rows): EncodedRows {
  const rejections: Rejection[] = [];
  const encoded = encodeText(options, input, throwOrReject(options, input, rejections));
  if (encoded) return { ...encoded, rejections };
  const invalid: Rejection[] = [];
  const valid = withoutInvalidText(input, throwOrReject(options, input, invalid));
  if (valid.rows === input.rows)
    throw new MalformedBlock('The encoded text is not valid UTF-8, although all its values are.');
  const others = encodeAsText(options, valid);
  return { ...others, rejections: [...invalid, ...others.rejections] };
}

/** Handles a row that the format cannot represent: throws, or adds it to `rejections`. */
const throwOrReject =
  ({ on_bad_row }: TextOptions | ParquetOptions, rows: Rows, rejections: Rejection[]) =>
  (bad: UnrepresentableValue): void => {
    if (on_bad_row === 'fail') throw new UnencodableRow(rowIdOf(rows, bad.rowAt), bad.column, bad.reason);
    rejections.push({ row: rejectedRow(rows, bad), block: rows.block, rowAt: bad.rowAt });
  };
