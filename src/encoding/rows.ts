import { isUtf8 } from 'node:buffer';
import type { ColumnType, ExportedColumn } from '../source/row_selection.ts';
import { fieldOf, formatUuid } from '../source/binary_tuple.ts';
import { replacedValue } from '../source/replaced_values.ts';

/** Size of a value in a block in bytes; -1 for types without a fixed size. */
export const valueSizes: Readonly<Record<ColumnType, number>> = {
  uuid: 16,
  timestamp: 8,
  date: 4,
  bigint: 8,
  integer: 4,
  double: 8,
  boolean: 1,
  text: -1,
  json: -1,
};

/** A value that the file format cannot represent. */
export interface UnrepresentableValue {
  /** The offset of the row's tuple in the block. */
  readonly rowAt: number;
  readonly column: string;
  /** The problem with the value, as the end of a sentence. */
  readonly reason: string;
}

/** Why a row with such a time is in no file: some readers of each format would show another one. */
export const unrepresentableTime = 'contains a time that is infinite or outside the years 0001 to 9999';

/** The file format cannot represent a value. Permanent: the row has to be fixed in the source. */
export class UnencodableRow extends Error {
  override readonly name = 'UnencodableRow';
  /** The row's uuid (events) or distinct_id (persons). */
  readonly row: string;
  readonly column: string;
  /** The problem with the value, as the end of a sentence. */
  readonly reason: string;

  constructor(row: string, column: string, reason: string) {
    super(`Row ${row} cannot be exported: column ${column} ${reason}.`);
    this.row = row;
    this.column = column;
    this.reason = reason;
  }
}

/** A block does not have the expected structure. This is a bug in exportd or damaged data, never a problem of a row. */
export class MalformedBlock extends Error {
  override readonly name = 'MalformedBlock';
}

/** Consecutive rows of a block (see `RowBlock`). */
export interface Rows {
  readonly block: Buffer;
  readonly rows: number;
  readonly columns: readonly ExportedColumn[];
}

/** The id of the row whose tuple starts at `rowAt`: its uuid, or its distinct_id. */
export function rowIdOf({ block, columns }: Pick<Rows, 'block' | 'columns'>, rowAt: number): string {
  const names = ['uuid', 'distinct_id'];
  // A column that a query selects can have any name.
  const isKey = columns.some(({ hidden }) => hidden)
    ? ({ hidden }: ExportedColumn) => hidden === true
    : () => true;
  const position = names
    .map((name) => columns.findIndex((column) => column.name === name && isKey(column)))
    .find((index) => index >= 0);
  if (position === undefined) return '(unnamed)';
  const { start, end } = fieldOf(block, rowAt, position);
  if (end < start) return '(unnamed)';
  return columns[position]?.type === 'uuid' ? formatUuid(block, start) : block.toString('utf8', start, end);
}

/** A block has text that is not UTF-8, or a value that was replaced. `withoutInvalidText` finds its rows. */
export class InvalidText extends Error {
  override readonly name = 'InvalidText';
}

/** Whether the bytes `[start, end)` are UTF-8. */
export const isValidText = (bytes: Buffer, view: DataView, start: number, end: number): boolean =>
  isAscii(view, start, end) || isUtf8(bytes.subarray(start, end));

/**
 * Removes rows with text that is not UTF-8, which would make the whole file unreadable. PostgreSQL rejects such text
 * in UTF8 databases, but damaged storage can return it, and values that were replaced are none.
 * Incomplete blocks are returned unchanged; the encoders report them.
 * @param onUnrepresentable receives each removed row, or throws
 */
export function withoutInvalidText(
  input: Rows,
  onUnrepresentable: (bad: UnrepresentableValue) => void,
): Rows {
  const { block, rows, columns } = input;
  const view = new DataView(block.buffer, block.byteOffset, block.length);
  const fields = columns.map(({ name, type }) => ({ name, size: valueSizes[type] }));
  const kept: Buffer[] = [];
  let keptUntil = 0;
  let left = rows;
  for (let at = 0; at < block.length;) {
    const rowAt = at;
    at += 2;
    let bad: Omit<UnrepresentableValue, 'rowAt'> | undefined;
    let widestBytes = 0;
    for (const { name, size } of fields) {
      if (at + 4 > block.length) return input;
      const length = view.getInt32(at);
      const start = at + 4;
      at = start + Math.max(0, length);
      if (at > block.length) return input;
      const isText = size < 0;
      if (isText ? isValidText(block, view, start, at) : length < 0 || length === size) continue;
      const replaced = replacedValue(block, start, at);
      // Of the values of a row that is too wide, the longest is the one to blame.
      if (replaced && replaced.bytes > widestBytes) {
        bad = { column: name, reason: replaced.reason };
        widestBytes = replaced.bytes;
      } else if (!replaced && isText) bad ??= { column: name, reason: 'contains bytes that are not UTF-8' };
    }
    if (!bad) continue;
    onUnrepresentable({ rowAt, ...bad });
    kept.push(block.subarray(keptUntil, rowAt));
    keptUntil = at;
    left -= 1;
  }
  if (left === rows) return input;
  return { block: Buffer.concat([...kept, block.subarray(keptUntil)]), rows: left, columns };
}

/** Nearly all texts are ASCII, and this check is much faster than a call into Node. */
function isAscii(view: DataView, start: number, end: number): boolean {
  let bits = 0;
  let at = start;
  for (; at + 16 <= end; at += 16) bits |= bitsOf16(view, at);
  if (at < end && end - start >= 16) bits |= bitsOf16(view, end - 16);
  else for (; at < end; at += 1) bits |= view.getUint8(at);
  return (bits & 0x8080_8080) === 0;
}

const bitsOf16 = (view: DataView, at: number): number =>
  view.getInt32(at, true) |
  view.getInt32(at + 4, true) |
  view.getInt32(at + 8, true) |
  view.getInt32(at + 12, true);
