import type { ExportedColumn } from '../../source/source.ts';

/** The values of one column of a block, still where they lie in the block. They are noted batch by batch. */
export interface ColumnValues {
  readonly column: ExportedColumn;
  readonly block: Buffer;
  /** The same memory as `block`. */
  readonly view: DataView;
  /** Where the length (int32) of each value stands in the block, its bytes behind it. Nulls have no entry. */
  readonly positions: Int32Array;
  /** How many of `positions` are noted. */
  count: number;
  /** For each row 1, or 0 for null. */
  readonly present: Uint8Array;
}

/** The first byte of a binary jsonb value, with which no JSON text begins. */
export const jsonbVersion = 1;
