import type { ColumnType, ExportedColumn } from '../../source/source.ts';
import { MalformedBlock } from '../row_not_encodable.ts';
import type { BadValue } from './bad_value.ts';
import type { ColumnValues } from './column_values.ts';
import { fitsTimestamp } from './timestamp.ts';

/** How many bytes a value has in the block, for the types that always have as many. */
const fixedSizes: Partial<Record<ColumnType, number>> = {
  uuid: 16,
  timestamp: 8,
  bigint: 8,
  integer: 4,
  boolean: 1,
};

/** Memory of an index, kept from block to block. */
export interface IndexMemory {
  positions: Int32Array;
  present: Uint8Array;
}

/** A block of rows seen as columns. */
export interface IndexedBlock {
  /** Rows that every column has a value or a null for; the bad ones are left out. */
  readonly rows: number;
  readonly columns: readonly ColumnValues[];
}

/**
 * Walks a block once and notes where each column's values lie, so that a column can then be encoded in one go. Bad values
 * are found here, before anything of their row was written.
 * @throws MalformedBlock
 */
export function indexBlock(
  block: Buffer,
  rows: number,
  columns: readonly ExportedColumn[],
  memory: IndexMemory,
  onBadValue: (bad: BadValue) => void,
): IndexedBlock {
  const size = rows * columns.length;
  if (memory.positions.length < size) memory.positions = new Int32Array(size);
  if (memory.present.length < size) memory.present = new Uint8Array(size);
  const { positions, present } = memory;
  const view = new DataView(block.buffer, block.byteOffset, block.length);
  const sizes = Int32Array.from(columns, ({ type }) => fixedSizes[type] ?? -1);
  const isTime = columns.map(({ type }) => type === 'timestamp');
  // The end of each column's positions; a column has room for as many as there are rows.
  const ends = Int32Array.from(columns, (_, index) => index * rows);
  let row = 0;
  let tuples = 0;
  let at = 0;
  while (at < block.length) {
    if (tuples === rows) throw new MalformedBlock(`A block holds more than its ${rows} rows.`);
    const rowAt = at;
    if (at + 2 > block.length || view.getInt16(at) !== columns.length)
      throw new MalformedBlock(
        `Row ${tuples} of a block has not the ${columns.length} fields of its columns.`,
      );
    at += 2;
    let bad = -1;
    for (let index = 0; index < sizes.length; index += 1) {
      const length = at + 4 > block.length ? Number.NaN : view.getInt32(at);
      const end = at + 4 + Math.max(0, length);
      const fixed = sizes[index] ?? -1;
      if (!(end <= block.length) || (length >= 0 && fixed >= 0 && length !== fixed))
        throw new MalformedBlock(`Row ${tuples} of a block ends within its column ${columns[index]?.name}.`);
      // The position of a null is overwritten by the next value's.
      const next = ends[index] ?? 0;
      positions[next] = at;
      const isPresent = length >= 0 ? 1 : 0;
      present[index * rows + row] = isPresent;
      ends[index] = next + isPresent;
      if (length >= 0 && isTime[index] && bad < 0 && !fitsTimestamp(view, at + 4)) bad = index;
      at = end;
    }
    tuples += 1;
    if (bad < 0) row += 1;
    else {
      for (let index = 0; index < sizes.length; index += 1)
        ends[index] = (ends[index] ?? 0) - (present[index * rows + row] ?? 0);
      onBadValue({
        rowAt,
        column: columns[bad]?.name ?? '',
        reason: 'holds a time that is infinite or after the year 294246',
      });
    }
  }
  if (tuples !== rows) throw new MalformedBlock(`A block holds ${tuples} rows where its page says ${rows}.`);
  return {
    rows: row,
    columns: columns.map((column, index) => ({
      column,
      block,
      view,
      positions: positions.subarray(index * rows, ends[index]),
      present: present.subarray(index * rows, index * rows + row),
    })),
  };
}
