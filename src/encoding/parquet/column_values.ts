import type { ExportedColumn } from '../../source/columns.ts';

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
}

/** The first byte of a binary jsonb value. No JSON text starts with it. */
export const jsonbVersion = 1;
