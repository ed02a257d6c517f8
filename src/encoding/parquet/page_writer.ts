import type { PageHeader } from 'hyparquet';
import { ByteWriter } from 'hyparquet-writer';
import { writePageHeader } from 'hyparquet-writer/src/datapage.js';
import { createGrowingBuffer, reserve, type GrowingBuffer } from '../growing_buffer.ts';
import { releaseMemory } from '../release_memory.ts';
import type { Codec } from './compression.ts';
import { appendHybridRuns, appendRun } from './hybrid_runs.ts';
import type { ValueRange } from './page_range.ts';

/** Size of a data page in bytes of values. The value that reaches it is still included. */
export const pageBytes = 1024 * 1024;

/** Writes the pages of one column, each compressed separately. */
export interface PageWriter {
  readonly codec: Codec;
  /** Headers and compressed pages in order. */
  readonly output: GrowingBuffer;
  /** Size of headers and uncompressed pages in bytes. */
  uncompressed: number;
  /** The data pages, without the dictionary page. */
  readonly pages: DataPage[];
}

/** A data page, as the page index describes it. Plain JSON, because it is journaled. */
export type DataPage = {
  /** Size with header in the file, in bytes. */
  readonly bytes: number;
  readonly rows: number;
  readonly nulls: number;
  /** Absent without values, for JSON, and if the values have no upper bound. */
  readonly range?: ValueRange;
};

/** Starts the pages of a column. `output` is overwritten. */
export function createPageWriter(codec: Codec, output: GrowingBuffer): PageWriter {
  output.length = 0;
  return { codec, output, uncompressed: 0, pages: [] };
}

/** Adds a data page: definition levels, then the values of its rows in the encoding. */
export function writeDataPage(
  writer: PageWriter,
  page: Buffer,
  { rows, nulls, range }: Omit<DataPage, 'bytes' | 'range'> & { readonly range: ValueRange | undefined },
  encoding: 'PLAIN' | 'RLE_DICTIONARY',
): void {
  const before = writer.output.length;
  writePage(writer, page, {
    type: 'DATA_PAGE',
    data_page_header: {
      num_values: rows,
      encoding,
      definition_level_encoding: 'RLE',
      repetition_level_encoding: 'RLE',
    },
  });
  writer.pages.push({ bytes: writer.output.length - before, rows, nulls, ...(range && { range }) });
}

/** Adds the dictionary page, which must be the first. */
export function writeDictionaryPage(writer: PageWriter, page: Buffer, entries: number): void {
  writePage(writer, page, {
    type: 'DICTIONARY_PAGE',
    dictionary_page_header: { num_values: entries, encoding: 'PLAIN' },
  });
}

function writePage(
  writer: PageWriter,
  page: Buffer,
  described: Omit<PageHeader, 'uncompressed_page_size' | 'compressed_page_size'>,
): void {
  const compressed = writer.codec.compress(page);
  const header = new ByteWriter(64);
  writePageHeader(header, {
    ...described,
    uncompressed_page_size: page.length,
    compressed_page_size: compressed.length,
  });
  const { output } = writer;
  reserve(output, header.offset + compressed.length);
  output.bytes.set(header.getBytes(), output.length);
  output.bytes.set(compressed, output.length + header.offset);
  output.length += header.offset + compressed.length;
  writer.uncompressed += header.offset + page.length;
  if (writer.codec.hasOwnMemory) releaseMemory(new Uint8Array(compressed.buffer));
}

/** The memory of the levels of a page. */
const levels = createGrowingBuffer(4096);

/**
 * The definition levels of rows (1 for a value, 0 for null), in the form that starts a data page.
 * @returns memory that the next call uses
 */
export function definitionLevels(present: Uint8Array, nulls: number): Buffer {
  levels.length = 4;
  if (nulls === 0) appendRun(levels, 1, present.length, 1);
  else appendHybridRuns(levels, present, present.length, 1);
  levels.bytes.writeUInt32LE(levels.length - 4, 0);
  return levels.bytes.subarray(0, levels.length);
}

/** Maximum size of `definitionLevels` in bytes: eight rows take at most the header and the value of a run. */
export const definitionLevelsBound = (rows: number): number => 16 + 2 * Math.ceil(rows / 8);

/** The end of the rows, starting at `row`, that contain `values` values. */
export function endOfRowsWith(present: Uint8Array, row: number, values: number): number {
  let end = row;
  for (let left = values; left > 0; end += 1) left -= present[end] ?? 0;
  return end;
}
