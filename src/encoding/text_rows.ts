import { fileColumns, type ColumnType } from '../source/source.ts';
import type { UnrepresentableValue } from './unrepresentable_value.ts';
import { appendFixed, fixedBytes, type GrowingBuffer } from './growing_buffer.ts';
import { MalformedBlock } from './unencodable_row.ts';
import type { Rows } from './rows.ts';
import type { TextFormat } from './text_format.ts';

/** How many bytes a value has in the block, for the types that always have as many; -1 for the others. */
const sizes: Readonly<Record<ColumnType, number>> = {
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

/**
 * Appends the rows of a block (see `RowBlock`) to `target`.
 * @param onBadValue takes note of a row that the format cannot hold, which is then left out, or throws
 * @returns the number of rows appended
 * @throws MalformedBlock, and what `onBadValue` throws
 */
export function appendRows(
  target: GrowingBuffer,
  { block, rows, columns }: Rows,
  format: TextFormat,
  onBadValue: (bad: UnrepresentableValue) => void,
): number {
  const view = new DataView(block.buffer, block.byteOffset, block.length);
  const shown = fileColumns(columns);
  const prefixes = format.prefixes(shown);
  const members = columns.map((column) => ({
    name: column.name,
    prefix: fixedBytes(prefixes[shown.indexOf(column)] ?? Buffer.alloc(0)),
    size: sizes[column.type],
    append: column.hidden ? null : format.append[column.type],
  }));
  const nullText = fixedBytes(format.nullText);
  const rowEnd = fixedBytes(format.rowEnd);
  let tuples = 0;
  let appended = 0;
  let at = 0;
  while (at < block.length) {
    const rowAt = at;
    const textAt = target.length;
    if (at + 2 > block.length || view.getInt16(at) !== members.length)
      throw new MalformedBlock(
        `Row ${tuples} of a block has not the ${members.length} fields of its columns.`,
      );
    at += 2;
    let badColumn: string | undefined;
    for (const { name, prefix, size, append } of members) {
      const length = at + 4 > block.length ? Number.NaN : view.getInt32(at);
      const start = at + 4;
      at = start + Math.max(0, length);
      if (!(at <= block.length) || (length >= 0 && size >= 0 && length !== size))
        throw new MalformedBlock(`Row ${tuples} of a block ends within its column ${name}.`);
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
      onBadValue({
        rowAt,
        column: badColumn,
        reason: 'holds a time that is infinite or outside the years 0001 to 9999',
      });
    }
  }
  if (tuples !== rows) throw new MalformedBlock(`A block holds ${tuples} rows where ${rows} were announced.`);
  return appended;
}
