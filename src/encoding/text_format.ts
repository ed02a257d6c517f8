import { type ColumnType, type ExportedColumn, fileColumns } from '../source/row_selection.ts';
import { appendBytes, appendFixed, type GrowingBuffer, prepareFixedBytes, reserve } from './memory.ts';
import { MalformedBlock, type Rows, type UnrepresentableValue, valueSizes } from './rows.ts';

/**
 * Appends the value at `[start, end)` of the block. Returns false when the format cannot represent it; the appended
 * bytes are then undefined.
 */
export type AppendValue = (target: GrowingBuffer, block: Buffer, start: number, end: number) => boolean;

/** A text format. Values are copied as bytes and never decoded to strings. */
export interface TextFormat {
  /** The text before the first row of a file. */
  header(columns: readonly ExportedColumn[]): Buffer;
  /** The text before the value of each column. The first one also starts the row. */
  prefixes(columns: readonly ExportedColumn[]): readonly Buffer[];
  readonly nullText: Buffer;
  readonly rowEnd: Buffer;
  readonly append: Readonly<Record<ColumnType, AppendValue>>;
}

export const hexDigits = Buffer.from('0123456789abcdef');
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
export const appendBigint: AppendValue = (target, block, start) =>
  appendAscii(target, block.readBigInt64BE(start).toString());

/** Appends an int4 of binary COPY in decimal digits. */
export const appendInteger: AppendValue = (target, block, start) =>
  appendAscii(target, block.readInt32BE(start).toString());

/**
 * Appends a number as JavaScript formats it, which every reader reads back as the same number. Infinities are not
 * formatted this way.
 */
export const appendFinite = (target: GrowingBuffer, value: number): true =>
  appendAscii(target, Object.is(value, -0) ? '-0' : String(value));

/** Appends a bool of binary COPY as true or false. */
export const appendBoolean: AppendValue = (target, block, start) =>
  appendAscii(target, block[start] === 1 ? 'true' : 'false');

/** Length of a formatted uuid in bytes. */
export const uuidLength = 36;

/** The two hexadecimal digits of each byte, as a 16-bit number. */
const hexPairs = Uint16Array.from({ length: 256 }, (_, byte) =>
  Buffer.from(byte.toString(16).padStart(2, '0')).readUInt16LE(),
);
/** The offset of each byte of a uuid in its text. */
const uuidOffsets = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

/** Formats a binary uuid at `at`. */
export function writeUuid(target: DataView, at: number, source: Buffer, start: number): void {
  for (let byte = 0; byte < 16; byte += 1)
    target.setUint16(at + (uuidOffsets[byte] ?? 0), hexPairs[source[start + byte] ?? 0] ?? 0, true);
  target.setUint8(at + 8, hyphen);
  target.setUint8(at + 13, hyphen);
  target.setUint8(at + 18, hyphen);
  target.setUint8(at + 23, hyphen);
}

/** The start of the text of a JSON value. Binary jsonb starts with a version byte, with which no JSON text starts. */
export const jsonTextStart = (block: Buffer, start: number): number =>
  block[start] === jsonbVersion ? start + 1 : start;

/** Whether a byte is LF or CR. */
export const isLineBreak = (byte: number): boolean => byte === lineFeed || byte === carriageReturn;

/**
 * Appends JSON as PostgreSQL returns it: numbers keep all digits, fields keep their order and duplicates. Line breaks
 * of a `json` column are removed: strings cannot contain them, so they only separate tokens.
 */
export const appendJson: AppendValue = (target, block, start, end) => {
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
    for (const { name, prefix, size, append } of fields) {
      const length = at + 4 > block.length ? Number.NaN : view.getInt32(at);
      const start = at + 4;
      at = start + Math.max(0, length);
      if (!(at <= block.length) || (length >= 0 && size >= 0 && length !== size))
        throw new MalformedBlock(`Row ${tuples} of a block ends within column ${name}.`);
      if (append === null) continue;
      appendFixed(target, prefix);
      if (length < 0) appendFixed(target, nullText);
      else if (!append(target, block, start, at)) badColumn ??= name;
    }
    tuples += 1;
    if (badColumn === undefined) {
      appendFixed(target, rowEnd);
      appended += 1;
    } else {
      target.length = textAt;
      onUnrepresentable({
        rowAt,
        column: badColumn,
        reason: 'contains a time that is infinite or outside the years 0001 to 9999',
      });
    }
  }
  if (tuples !== rows) throw new MalformedBlock(`A block has ${tuples} rows, expected ${rows}.`);
  return appended;
}
