import { type ColumnType, type ExportedColumn, fileColumns } from '../source/row_selection.ts';
import { replacedValue } from '../source/replaced_values.ts';
import type { TextFileFormat } from './encoder.ts';
import { dayLength, timestampLength, writeDate, writeTimestamp } from '../source/write_timestamp.ts';
import {
  appendBytes,
  appendFixed,
  createGrowingBuffer,
  type GrowingBuffer,
  prepareFixedBytes,
  reserve,
} from './memory.ts';
import {
  MalformedBlock,
  type Rows,
  type UnrepresentableValue,
  unrepresentableTime,
  valueSizes,
} from './rows.ts';

/**
 * Appends the value at `[start, end)` of the block. Returns false when the format cannot represent it; the appended
 * bytes are then undefined.
 */
export type AppendValue = (target: GrowingBuffer, block: Buffer, start: number, end: number) => boolean;

/** A text format. Values are copied as bytes and never decoded to strings. */
export interface TextFormat {
  /** Of file names, without a dot. */
  readonly extension: string;
  readonly contentType: string;
  /** The text before the first row of a file. */
  header(columns: readonly ExportedColumn[]): Buffer;
  /** The text before the value of each column. The first one also starts the row. */
  prefixes(columns: readonly ExportedColumn[]): readonly Buffer[];
  readonly nullText: Buffer;
  readonly rowEnd: Buffer;
  readonly append: Readonly<Record<ColumnType, AppendValue>>;
  /** Whether it writes a note in place of a value that was replaced (`replacedValue`). */
  readonly notesReplaced?: true;
}

const hexDigits = Buffer.from('0123456789abcdef');
const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const hyphen = 0x2d;
const jsonbVersion = 1;

/** Appends ASCII text: numbers, `true`, `false`. */
function appendAscii(target: GrowingBuffer, text: string): true {
  reserve(target, text.length);
  target.length += target.bytes.write(text, target.length, 'latin1');
  return true;
}

/** Appends an int8 of binary COPY in decimal digits. */
const appendBigint: AppendValue = (target, block, start) =>
  appendAscii(target, block.readBigInt64BE(start).toString());

/** Appends an int4 of binary COPY in decimal digits. */
const appendInteger: AppendValue = (target, block, start) =>
  appendAscii(target, block.readInt32BE(start).toString());

/**
 * Appends a number as JavaScript formats it, which every reader reads back as the same number. Infinities are not
 * formatted this way.
 */
const appendFinite = (target: GrowingBuffer, value: number): true =>
  appendAscii(target, Object.is(value, -0) ? '-0' : String(value));

/** Appends a bool of binary COPY as true or false. */
const appendBoolean: AppendValue = (target, block, start) =>
  appendAscii(target, block[start] === 1 ? 'true' : 'false');

/** Length of a formatted uuid in bytes. */
const uuidLength = 36;

/** The two hexadecimal digits of each byte, as a 16-bit number. */
const hexPairs = Uint16Array.from({ length: 256 }, (_, byte) =>
  Buffer.from(byte.toString(16).padStart(2, '0')).readUInt16LE(),
);
/** The offset of each byte of a uuid in its text. */
const uuidOffsets = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

/** Formats a binary uuid at `at`. */
function writeUuid(target: DataView, at: number, source: Buffer, start: number): void {
  for (let byte = 0; byte < 16; byte += 1)
    target.setUint16(at + (uuidOffsets[byte] ?? 0), hexPairs[source[start + byte] ?? 0] ?? 0, true);
  target.setUint8(at + 8, hyphen);
  target.setUint8(at + 13, hyphen);
  target.setUint8(at + 18, hyphen);
  target.setUint8(at + 23, hyphen);
}

/** The start of the text of a JSON value. Binary jsonb starts with a version byte, with which no JSON text starts. */
const jsonTextStart = (block: Buffer, start: number): number =>
  block[start] === jsonbVersion ? start + 1 : start;

/** Whether a byte is LF or CR. */
const isLineBreak = (byte: number): boolean => byte === lineFeed || byte === carriageReturn;

/**
 * Appends JSON as PostgreSQL returns it: numbers keep all digits, fields keep their order and duplicates. Line breaks
 * of a `json` column are removed: strings cannot contain them, so they only separate tokens.
 */
const appendJson: AppendValue = (target, block, start, end) => {
  let from = jsonTextStart(block, start);
  // PostgreSQL prints jsonb without line breaks.
  if (from === start)
    for (let at = start; at < end; at += 1)
      if (isLineBreak(block[at] ?? 0)) {
        appendBytes(target, block, from, at);
        from = at + 1;
      }
  appendBytes(target, block, from, end);
  return true;
};

/**
 * Appends the rows of a block (see `RowBlock`) to `target`.
 * @param onUnrepresentable receives a row that the format cannot represent, which is then left out; or throws
 * @returns the number of appended rows
 * @throws MalformedBlock, and errors of `onUnrepresentable`
 */
export function appendRows(
  target: GrowingBuffer,
  { block, rows, columns }: Rows,
  format: TextFormat,
  onUnrepresentable: (bad: UnrepresentableValue) => void,
): number {
  const view = new DataView(block.buffer, block.byteOffset, block.length);
  const visible = fileColumns(columns);
  const prefixes = format.prefixes(visible);
  const fields = columns.map((column) => ({
    name: column.name,
    prefix: prepareFixedBytes(prefixes[visible.indexOf(column)] ?? Buffer.alloc(0)),
    size: valueSizes[column.type],
    append: column.hidden ? null : format.append[column.type],
  }));
  const nullText = prepareFixedBytes(format.nullText);
  const rowEnd = prepareFixedBytes(format.rowEnd);
  let tuples = 0;
  let appended = 0;
  let at = 0;
  while (at < block.length) {
    const rowAt = at;
    const textAt = target.length;
    if (at + 2 > block.length || view.getInt16(at) !== fields.length)
      throw new MalformedBlock(`Row ${tuples} of a block does not have ${fields.length} fields.`);
    at += 2;
    let badColumn: string | undefined;
    let reason: string = unrepresentableTime;
    for (const { name, prefix, size, append } of fields) {
      const length = at + 4 > block.length ? Number.NaN : view.getInt32(at);
      const start = at + 4;
      at = start + Math.max(0, length);
      const isWhole = at <= block.length;
      const misfits = length >= 0 && size >= 0 && length !== size;
      const replaced = isWhole && misfits ? replacedValue(block, start, at) : undefined;
      if (!isWhole || (misfits && !replaced))
        throw new MalformedBlock(`Row ${tuples} of a block ends within column ${name}.`);
      if (append === null) continue;
      appendFixed(target, prefix);
      if (length < 0) appendFixed(target, nullText);
      else if (replaced && format.notesReplaced !== true) {
        if (badColumn === undefined) ({ reason } = replaced);
        badColumn ??= name;
      } else if (!append(target, block, start, at)) badColumn ??= name;
    }
    tuples += 1;
    if (badColumn === undefined) {
      appendFixed(target, rowEnd);
      appended += 1;
    } else {
      target.length = textAt;
      onUnrepresentable({ rowAt, column: badColumn, reason });
    }
  }
  if (tuples !== rows) throw new MalformedBlock(`A block has ${tuples} rows, expected ${rows}.`);
  return appended;
}

const quote = 0x22;
const backslash = 0x5c;

/** The size of each byte of a text in JSON: 1; 2 for escapes like `\n`; 6 for `\u00XX`. */
const escapedSize = new Uint8Array(256).fill(1);
escapedSize.fill(6, 0, 0x20);
/** The letter after the backslash, for bytes with a short escape. */
const escapeLetter = new Uint8Array(256);
for (const [byte, letter] of [
  [0x08, 'b'],
  [0x09, 't'],
  [0x0a, 'n'],
  [0x0c, 'f'],
  [0x0d, 'r'],
  [quote, '"'],
  [backslash, '\\'],
] as const) {
  escapedSize[byte] = 2;
  escapeLetter[byte] = letter.charCodeAt(0);
}

/** Appends UTF-8 text as a JSON string, with the minimum of escapes. */
export const appendText: AppendValue = (target, block, start, end) => {
  let size = 0;
  for (let at = start; at < end; at += 1) size += escapedSize[block[at] ?? 0] ?? 1;
  reserve(target, size + 2);
  const { bytes } = target;
  bytes[target.length] = quote;
  target.length += 1;
  if (size === end - start) appendBytes(target, block, start, end);
  else appendEscaped(target, block, start, end);
  bytes[target.length] = quote;
  target.length += 1;
  return true;
};

function appendEscaped(target: GrowingBuffer, source: Buffer, start: number, end: number): void {
  const { bytes } = target;
  let to = target.length;
  for (let at = start; at < end; at += 1) {
    const byte = source[at] ?? 0;
    const size = escapedSize[byte] ?? 1;
    if (size === 1) {
      bytes[to] = byte;
    } else if (size === 2) {
      bytes[to] = backslash;
      bytes[to + 1] = escapeLetter[byte] ?? 0;
    } else {
      bytes.write('\\u00', to, 'latin1');
      bytes[to + 4] = hexDigits[byte >> 4] ?? 0;
      bytes[to + 5] = hexDigits[byte & 15] ?? 0;
    }
    to += size;
  }
  target.length = to;
}

/** Appends a binary uuid. */
const appendUuid: AppendValue = (target, block, start) => {
  reserve(target, uuidLength + 2);
  const { bytes, length } = target;
  bytes[length] = quote;
  writeUuid(target.view, length + 1, block, start);
  bytes[length + 1 + uuidLength] = quote;
  target.length = length + uuidLength + 2;
  return true;
};

/** Appends a binary timestamp. Returns false for infinities and years outside 0001 to 9999. */
const appendTimestamp: AppendValue = (target, block, start) => {
  reserve(target, timestampLength + 2);
  const { bytes, length } = target;
  if (!writeTimestamp(bytes, length + 1, block, start)) return false;
  bytes[length] = quote;
  bytes[length + 1 + timestampLength] = quote;
  target.length = length + timestampLength + 2;
  return true;
};

/** Appends a binary date. Returns false for infinities and years outside 0001 to 9999. */
const appendDate: AppendValue = (target, block, start) => {
  reserve(target, dayLength + 2);
  const { bytes, length } = target;
  if (!writeDate(bytes, length + 1, block.readInt32BE(start))) return false;
  bytes[length] = quote;
  bytes[length + 1 + dayLength] = quote;
  target.length = length + dayLength + 2;
  return true;
};

/** Appends a number. JSON has no infinities and no NaN: they are texts, which DuckDB, Spark and ClickHouse read as numbers. */
const appendDouble: AppendValue = (target, block, start) => {
  const value = block.readDoubleBE(start);
  return Number.isFinite(value) ? appendFinite(target, value) : appendAscii(target, `"${value}"`);
};

/** JSON lines: one object per row with its fields in column order, LF after each row. */
const jsonLines: TextFormat = {
  extension: 'jsonl',
  contentType: 'application/jsonl',
  header: () => Buffer.alloc(0),
  prefixes: (columns) =>
    columns.map(({ name }, index) => Buffer.from(`${index === 0 ? '{' : ','}${JSON.stringify(name)}:`)),
  nullText: Buffer.from('null'),
  rowEnd: Buffer.from('}\n'),
  append: {
    uuid: appendUuid,
    text: appendText,
    timestamp: appendTimestamp,
    date: appendDate,
    json: appendJson,
    bigint: appendBigint,
    integer: appendInteger,
    double: appendDouble,
    boolean: appendBoolean,
  },
};

const space = 0x20;
const tab = 0x09;
/** Up to this size in bytes, reserving twice the size is cheaper than counting quotes. */
const smallValue = 64 * 1024;

/** 1 for bytes that require quotes. */
const needsQuotes = new Uint8Array(256);
for (const character of '",\r\n') needsQuotes[character.charCodeAt(0)] = 1;

/** Appends UTF-8 text, quoted if necessary. An empty string is quoted, because null is written as nothing. */
const appendField: AppendValue = (target, block, start, end) => {
  if (isPlainField(block, start, end)) appendBytes(target, block, start, end);
  else appendQuotedField(target, block, start, end, false);
  return true;
};

/** Appends JSON as text, without line breaks between tokens. */
const appendJsonField: AppendValue = (target, block, start, end) => {
  const from = jsonTextStart(block, start);
  if (isPlainField(block, from, end)) appendBytes(target, block, from, end);
  else appendQuotedField(target, block, from, end, from === start);
  return true;
};

/** Whether a text can be written without quotes. Some readers trim unquoted values. */
function isPlainField(source: Buffer, start: number, end: number): boolean {
  if (start === end) return false;
  for (let at = start; at < end; at += 1) if (needsQuotes[source[at] ?? 0] === 1) return false;
  return !isBlank(source[start]) && !isBlank(source[end - 1]);
}

const isBlank = (byte: number | undefined): boolean => byte === space || byte === tab;

function appendQuotedField(
  target: GrowingBuffer,
  source: Buffer,
  start: number,
  end: number,
  withoutLineBreaks: boolean,
): void {
  const size = end - start;
  reserve(target, 2 + size + (size < smallValue ? size : quotesIn(source, start, end)));
  const { bytes } = target;
  let to = target.length;
  bytes[to++] = quote;
  for (let at = start; at < end; at += 1) {
    const byte = source[at] ?? 0;
    if (withoutLineBreaks && isLineBreak(byte)) continue;
    if (byte === quote) bytes[to++] = quote;
    bytes[to++] = byte;
  }
  bytes[to++] = quote;
  target.length = to;
}

function quotesIn(source: Buffer, start: number, end: number): number {
  let quotes = 0;
  for (let at = start; at < end; at += 1) if (source[at] === quote) quotes += 1;
  return quotes;
}

/** Appends a binary uuid. */
const appendPlainUuid: AppendValue = (target, block, start) => {
  reserve(target, uuidLength);
  writeUuid(target.view, target.length, block, start);
  target.length += uuidLength;
  return true;
};

/** Appends a binary timestamp. Returns false for infinities and years outside 0001 to 9999. */
const appendPlainTimestamp: AppendValue = (target, block, start) => {
  reserve(target, timestampLength);
  if (!writeTimestamp(target.bytes, target.length, block, start)) return false;
  target.length += timestampLength;
  return true;
};

/** Appends a binary date. Returns false for infinities and years outside 0001 to 9999. */
const appendPlainDate: AppendValue = (target, block, start) => {
  reserve(target, dayLength);
  if (!writeDate(target.bytes, target.length, block.readInt32BE(start))) return false;
  target.length += dayLength;
  return true;
};

/** Appends a number. `Infinity`, `-Infinity` and `NaN` are written as PostgreSQL prints them. */
const appendPlainDouble: AppendValue = (target, block, start) =>
  appendFinite(target, block.readDoubleBE(start));

const comma = Buffer.from(',');
const csvRowEnd = Buffer.from('\n');

/** CSV (RFC 4180) with a header line and LF after each row. Null is nothing, an empty string is `""`. */
const csv: TextFormat = {
  extension: 'csv',
  contentType: 'text/csv; charset=utf-8; header=present',
  header(columns) {
    const line = createGrowingBuffer(1_024);
    for (const [index, { name }] of columns.entries()) {
      const text = Buffer.from(name);
      if (index > 0) appendBytes(line, comma, 0, comma.length);
      appendField(line, text, 0, text.length);
    }
    appendBytes(line, csvRowEnd, 0, csvRowEnd.length);
    return line.bytes.subarray(0, line.length);
  },
  prefixes: (columns) => columns.map((_, index) => (index === 0 ? Buffer.alloc(0) : comma)),
  nullText: Buffer.alloc(0),
  rowEnd: csvRowEnd,
  append: {
    uuid: appendPlainUuid,
    text: appendField,
    timestamp: appendPlainTimestamp,
    date: appendPlainDate,
    json: appendJsonField,
    bigint: appendBigint,
    integer: appendInteger,
    double: appendPlainDouble,
    boolean: appendBoolean,
  },
};

/** The text formats by name. */
export const textFormats: Readonly<Record<TextFileFormat, TextFormat>> = {
  JSONLines: jsonLines,
  CSV: csv,
};
