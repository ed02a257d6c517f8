import type { JsonValue } from '../../domain/event.ts';
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

/** Metadata of one column chunk for footer and page index. Plain JSON, kept short because it is journaled. */
export type ColumnChunk = {
  /** Size of the pages with headers in the file, in bytes. */
  readonly compressed: number;
  /** The same size before compression. */
  readonly uncompressed: number;
  readonly nulls: number;
  /** Size of the dictionary page in bytes, the first page of the chunk; absent without a dictionary. */
  readonly dictionary?: number;
  /** Size of the bloom filter with its header, which follows the chunks of the row group; absent without one. */
  readonly filter?: number;
  /** Absent without values, and if they have no upper bound. */
  readonly range?: ValueRange;
  readonly pages: readonly DataPage[];
};

/**
 * Metadata of a row group for the footer. The chunks follow each other in column order, and their bloom filters the
 * chunks, so their offsets follow from their sizes.
 */
export type RowGroup = {
  readonly rows: number;
  readonly columns: readonly ColumnChunk[];
  /** The positions of the columns by which the rows are sorted. */
  readonly sorted: readonly number[];
};

/** Parses a journaled row group. @throws TypeError when it is not one */
export function parseRowGroup(value: JsonValue): RowGroup {
  if (isRowGroup(value)) return value;
  throw new TypeError('The state of a part is not a Parquet row group.');
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const areNumbers = (...values: unknown[]): boolean => values.every((value) => typeof value === 'number');

const isOptionalRange = (value: unknown): boolean =>
  value === undefined || (isRecord(value) && typeof value.min === 'string' && typeof value.max === 'string');

const isPage = (page: unknown): boolean =>
  isRecord(page) && areNumbers(page.bytes, page.rows, page.nulls) && isOptionalRange(page.range);

const isChunk = (chunk: unknown): boolean =>
  isRecord(chunk) &&
  areNumbers(chunk.compressed, chunk.uncompressed, chunk.nulls, chunk.dictionary ?? 0, chunk.filter ?? 0) &&
  isOptionalRange(chunk.range) &&
  Array.isArray(chunk.pages) &&
  chunk.pages.every(isPage);

const isRowGroup = (value: unknown): value is RowGroup =>
  isRecord(value) &&
  areNumbers(value.rows) &&
  Array.isArray(value.columns) &&
  value.columns.every(isChunk) &&
  Array.isArray(value.sorted) &&
  value.sorted.every((position) => typeof position === 'number');
