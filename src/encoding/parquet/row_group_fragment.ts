import type { ValueRange } from './page_range.ts';
import type { DataPage } from './page_writer.ts';

/**
 * A column of a block, before blocks are joined to a row group. With a dictionary its bytes are not compressed: the entries
 * in PLAIN encoding, the index of the entry of each value (uint16), and if there are nulls, for each row 1, or 0 for null.
 */
export type ColumnFragment = {
  /** Size in the bytes of the block. */
  readonly bytes: number;
  /** Size of pages and headers before compression, or of the dictionary. */
  readonly uncompressed: number;
  readonly nulls: number;
  /** Data pages in PLAIN encoding, compressed; empty with a dictionary. */
  readonly pages: readonly DataPage[];
  readonly dictionary?: DictionaryFragment;
  /** Size of the hashes of values after the pages, for a bloom filter; absent with a dictionary. */
  readonly hashes?: number;
};

/** The dictionary of a block. */
export type DictionaryFragment = {
  readonly entries: number;
  /** Size of the entries in bytes. */
  readonly entryBytes: number;
  readonly range?: ValueRange;
};

/** The columns of a block, whose bytes follow each other. Plain JSON, as the state of an encoded block. */
export type RowGroupFragment = {
  readonly rows: number;
  readonly columns: readonly ColumnFragment[];
  /** The positions of the columns by which the rows are sorted. */
  readonly sorted: readonly number[];
};
