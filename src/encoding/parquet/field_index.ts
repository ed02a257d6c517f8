import type { ExportedColumn } from '../../source/row_selection.ts';
import { replacedValue } from '../../source/replaced_values.ts';
import { firstDay, lastDay, microsecondsPerDay } from '../../source/write_timestamp.ts';
import {
  InvalidText,
  MalformedBlock,
  type UnrepresentableValue,
  unrepresentableTime,
  valueSizes,
} from '../rows.ts';

/** The values of one column of a block, referenced by position. They are indexed in batches. */
export interface ColumnValues {
  readonly column: ExportedColumn;
  readonly block: Buffer;
  /** The same memory as `block`. */
  readonly view: DataView;
  /** The offset of each value's length (int32) in the block; the bytes follow. Nulls have no entry. */
  readonly positions: Int32Array;
  /** The number of entries in `positions`. */
  count: number;
  /** For each row 1, or 0 for null. */
  readonly present: Uint8Array;
  /** The bytes of each entry with its length, if all have the same and stand one behind the other; they are ASCII then. */
  readonly entryBytes?: number;
}

/** The first byte of a binary jsonb value. No JSON text starts with it. */
export const jsonbVersion = 1;

/** Microseconds from 1970 (Parquet) to 2000 (PostgreSQL). */
export const epochShift = 946_684_800_000_000;

const [firstTime, endTime] = [firstDay, lastDay + 1].map(
  (day) => BigInt(day) * BigInt(microsecondsPerDay),
) as [bigint, bigint];

/** Whether the binary timestamp at `at` has a year of the text formats. The high half alone decides for all usual times. */
function fitsTimestamp(view: DataView, at: number): boolean {
  const high = view.getInt32(at);
  if (high > -0x20_0000 && high < 0x20_0000) return true;
  const time = view.getBigInt64(at);
  return time >= firstTime && time < endTime;
}

/** Days from 1970 (Parquet) to 2000 (PostgreSQL). */
export const epochDays = 10_957;

/** Whether the binary date at `at` has a year of the text formats. */
function fitsDate(view: DataView, at: number): boolean {
  const day = view.getInt32(at);
  return day >= firstDay && day <= lastDay;
}

const [timestamp, date] = [1, 2];

/** Buffers of an index, reused from block to block. */
export interface IndexMemory {
  positions: Int32Array;
  present: Uint8Array;
}

/** A column-wise index of a block, built incrementally. */
export interface FieldIndex {
  /** Indexed rows, without those that Parquet cannot represent. */
  rows: number;
  readonly columns: readonly ColumnValues[];
  /**
   * Indexes about `bytes` more bytes of the block. Unrepresentable values are found here, before anything of their
   * row was written.
   * @returns whether any rows were left
   * @throws MalformedBlock, and InvalidText for a value of fixed size that was replaced
   */
  advance(bytes: number): boolean;
}

/**
 * Starts the index of a block of `rows` rows. It uses the buffers of `memory`, so there can be only one index at a
 * time.
 */
export function createFieldIndex(
  block: Buffer,
  rows: number,
  columns: readonly ExportedColumn[],
  memory: IndexMemory,
  onUnrepresentable: (bad: UnrepresentableValue) => void,
): FieldIndex {
  const size = rows * columns.length;
  if (memory.positions.length < size) memory.positions = new Int32Array(size);
  if (memory.present.length < size) memory.present = new Uint8Array(size);
  const { positions, present } = memory;
  const view = new DataView(block.buffer, block.byteOffset, block.length);
  const sizes = Int32Array.from(columns, ({ type }) => valueSizes[type]);
  const isTime = Uint8Array.from(columns, ({ type, hidden }) =>
    hidden ? 0 : type === 'timestamp' ? timestamp : type === 'date' ? date : 0,
  );
  /** The end of each column's positions. Each column has space for all rows. */
  const ends = Int32Array.from(columns, (_, index) => index * rows);
  let tuples = 0;
  let at = 0;

  /**
   * Indexes the tuple at `at` as row `row` and advances.
   * @returns the index of a column with an unrepresentable value, or -1
   */
  const indexTuple = (row: number): number => {
    if (tuples === rows) throw new MalformedBlock(`A block has more than the expected ${rows} rows.`);
    if (at + 2 > block.length || view.getInt16(at) !== columns.length)
      throw new MalformedBlock(`Row ${tuples} of a block does not have ${columns.length} fields.`);
    tuples += 1;
    let bad = -1;
    let from = at + 2;
    for (let index = 0; index < sizes.length; index += 1) {
      const length = from + 4 > block.length ? block.length : view.getInt32(from);
      const end = from + 4 + (length < 0 ? 0 : length);
      const fixed = sizes[index] ?? -1;
      if (end > block.length || (length >= 0 && fixed >= 0 && length !== fixed)) {
        if (end <= block.length && replacedValue(block, from + 4, end)) throw new InvalidText();
        throw new MalformedBlock(`Row ${tuples - 1} of a block ends within column ${columns[index]?.name}.`);
      }
      // The position of a null is overwritten by the next value.
      const next = ends[index] ?? 0;
      positions[next] = from;
      const isPresent = length >= 0 ? 1 : 0;
      present[index * rows + row] = isPresent;
      ends[index] = next + isPresent;
      const time = isTime[index];
      if (time !== 0 && length >= 0 && bad < 0) {
        const fits = time === date ? fitsDate : fitsTimestamp;
        if (!fits(view, from + 4)) bad = index;
      }
      from = end;
    }
    at = from;
    return bad;
  };

  const removeRow = (row: number): void => {
    for (let index = 0; index < sizes.length; index += 1)
      ends[index] = (ends[index] ?? 0) - (present[index * rows + row] ?? 0);
  };

  return {
    rows: 0,
    columns: columns.map((column, index) => ({
      column,
      block,
      view,
      positions: positions.subarray(index * rows, (index + 1) * rows),
      count: 0,
      present: present.subarray(index * rows, (index + 1) * rows),
    })),
    advance(bytes) {
      const until = Math.min(block.length, at + bytes);
      const start = at;
      while (at < until) {
        const rowAt = at;
        const bad = indexTuple(this.rows);
        if (bad < 0) this.rows += 1;
        else {
          removeRow(this.rows);
          onUnrepresentable({
            rowAt,
            column: columns[bad]?.name ?? '',
            reason: unrepresentableTime,
          });
        }
      }
      this.columns.forEach((values, index) => (values.count = (ends[index] ?? 0) - index * rows));
      if (at === block.length && tuples !== rows)
        throw new MalformedBlock(`A block has ${tuples} rows, expected ${rows}.`);
      return at > start;
    },
  };
}
