import type { ColumnType, ExportedColumn } from '../../src/source/row_selection.ts';
import type { FingerprintPlan, RowBlock } from '../../src/source/source.ts';

/** A field of a binary COPY tuple. */
export type FieldBytes = Buffer | null;

export const int32 = (value: number): Buffer => {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeInt32BE(value);
  return bytes;
};

export const int64 = (value: bigint): Buffer => {
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeBigInt64BE(value);
  return bytes;
};

/** Consecutive binary COPY tuples in a separate buffer. */
export function copyBlock(rows: readonly (readonly FieldBytes[])[]): Buffer {
  let length = 0;
  for (const fields of rows) {
    length += 2;
    for (const field of fields) length += 4 + (field?.length ?? 0);
  }
  const block = Buffer.allocUnsafeSlow(length);
  let at = 0;
  for (const fields of rows) {
    at = block.writeUInt16BE(fields.length, at);
    for (const field of fields) {
      at = block.writeInt32BE(field?.length ?? -1, at);
      if (field) at += field.copy(block, at);
    }
  }
  return block;
}

/** A plan of keys in these columns, in an hour that starts at the epoch. */
export const planOf = (inserted_at: number, id: number): FingerprintPlan => ({
  hash: 'hashtextextended/0',
  width_ms: 56_250,
  origin: '2000-01-01T00:00:00.000Z',
  inserted_at,
  id,
});

/** A block with the columns and, hidden, the keys of its rows: the epoch, and the first field or its index. */
export const keyedBlock = (
  columns: readonly ExportedColumn[],
  rows: readonly (readonly FieldBytes[])[],
): Pick<RowBlock, 'columns' | 'block' | 'rows' | 'fingerprint'> => ({
  columns: [
    ...columns,
    { name: '_inserted_at', type: 'timestamp', hidden: true },
    { name: 'distinct_id', type: 'text', hidden: true },
  ],
  block: copyBlock(
    rows.map((fields, index) => [...fields, int64(0n), fields[0] ?? Buffer.from(String(index))]),
  ),
  rows: rows.length,
  fingerprint: planOf(columns.length, columns.length + 1),
});

/** Columns named after their position. */
export const columnsOf = (...types: ColumnType[]): ExportedColumn[] =>
  types.map((type, index) => ({ name: `c${index}`, type }));
