import type { ColumnType, ExportedColumn } from '../../source/columns.ts';
import type { UnrepresentableValue } from '../unrepresentable_value.ts';
import { MalformedBlock } from '../unencodable_row.ts';
import type { ColumnValues } from './column_values.ts';
import { fitsDate, fitsTimestamp } from './timestamp.ts';

/** Size of a value in bytes, for types of fixed size. */
const fixedSizes: Partial<Record<ColumnType, number>> = {
  uuid: 16,
  timestamp: 8,
  date: 4,
  bigint: 8,
  integer: 4,
  double: 8,
  boolean: 1,
};

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
   * @throws MalformedBlock
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
  const sizes = Int32Array.from(columns, ({ type }) => fixedSizes[type] ?? -1);
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
      if (end > block.length || (length >= 0 && fixed >= 0 && length !== fixed))
        throw new MalformedBlock(`Row ${tuples - 1} of a block ends within column ${columns[index]?.name}.`);
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
            reason: 'contains a time that is infinite or after the year 294246',
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
