import type { ColumnType, ExportedColumn } from '../../src/source/source.ts';

/** A field of a binary COPY tuple. */
export type FieldBytes = Buffer | null;

export const int32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
};

export const int64 = (value: bigint): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(value);
  return bytes;
};

/** Consecutive binary COPY tuples in a separate buffer. */
export function copyBlock(rows: readonly (readonly FieldBytes[])[]): Buffer {
  const tuples = rows.flatMap((fields) => [
    Buffer.from([fields.length >> 8, fields.length & 255]),
    ...fields.flatMap((field) => (field ? [int32(field.length), field] : [int32(-1)])),
  ]);
  const joined = Buffer.concat(tuples);
  const block = Buffer.allocUnsafeSlow(joined.length);
  joined.copy(block);
  return block;
}

/** Columns named after their position. */
export const columnsOf = (...types: ColumnType[]): ExportedColumn[] =>
  types.map((type, index) => ({ name: `c${index}`, type }));
