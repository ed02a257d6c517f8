import { type ColumnType, fileColumns } from '../source/columns.ts';
import type { UnrepresentableValue } from './unrepresentable_value.ts';
import { appendFixed, prepareFixedBytes, type GrowingBuffer } from './growing_buffer.ts';
import { MalformedBlock } from './unencodable_row.ts';
import type { Rows } from './rows.ts';
import type { TextFormat } from './text_format.ts';

/** Size of a value in bytes for types of fixed size; -1 for others. */
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
    size: sizes[column.type],
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
