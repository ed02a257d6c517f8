import type { PageHeader } from 'hyparquet';
import { ByteWriter } from 'hyparquet-writer';
import { writePageHeader } from 'hyparquet-writer/src/datapage.js';
import { createGrowingBuffer, type GrowingBuffer, releaseMemory, reserve } from '../memory.ts';
import type { Codec } from './compression.ts';
import type { ValueRange } from './page_range.ts';

/** Shorter runs of a value are packed. */
const minRunLength = 8;

/**
 * Appends values in the encoding RLE of Parquet: runs of equal values, and other values packed in groups of eight.
 * @param bitWidth the bits of each value, from 1 to 16
 */
export function appendHybridRuns(
  target: GrowingBuffer,
  values: Uint8Array | Int32Array,
  count: number,
  bitWidth: number,
): void {
  reserve(target, hybridRunsBound(count, bitWidth));
  let packedFrom = 0;
  for (let at = 0; at < count;) {
    const value = values[at] ?? 0;
    let end = at + 1;
    while (end < count && values[end] === value) end += 1;
    if (end - at < minRunLength) at += 8;
    else {
      appendPacked(target, values, packedFrom, at, bitWidth);
      appendRun(target, value, end - at, bitWidth);
      at = packedFrom = end;
    }
  }
  appendPacked(target, values, packedFrom, count, bitWidth);
}

/** Appends one run of a value. */
function appendRun(target: GrowingBuffer, value: number, length: number, bitWidth: number): void {
  reserve(target, maxRunBytes);
  appendVarInt(target, length * 2);
  for (let shift = 0; shift < bitWidth; shift += 8) appendByte(target, value >>> shift);
}

/** The header of up to five bytes and the value of up to two. */
const maxRunBytes = 8;

/** Maximum size of values in bytes: each run, and the packed values before it, replace at least eight packed values. */
const hybridRunsBound = (count: number, bitWidth: number): number =>
  2 * maxRunBytes * (1 + Math.ceil(count / minRunLength)) + Math.ceil(count / 8) * bitWidth;

/** The last group is filled with zeros. */
function appendPacked(
  target: GrowingBuffer,
  values: Uint8Array | Int32Array,
  from: number,
  until: number,
  bitWidth: number,
): void {
  if (from >= until) return;
  const groups = Math.ceil((until - from) / 8);
  appendVarInt(target, groups * 2 + 1);
  const { bytes } = target;
  const end = target.length + groups * bitWidth;
  let at = target.length;
  let bits = 0;
  let used = 0;
  for (let index = from; index < until; index += 1) {
    bits |= (values[index] ?? 0) << used;
    used += bitWidth;
    for (; used >= 8; used -= 8) {
      bytes[at] = bits;
      at += 1;
      bits >>>= 8;
    }
  }
  for (; at < end; at += 1) {
    bytes[at] = bits;
    bits = 0;
  }
  target.length = end;
}

function appendVarInt(target: GrowingBuffer, value: number): void {
  let rest = value;
  for (; rest >= 0x80; rest >>>= 7) appendByte(target, (rest & 0x7f) | 0x80);
  appendByte(target, rest);
}

function appendByte(target: GrowingBuffer, byte: number): void {
  target.bytes[target.length] = byte;
  target.length += 1;
}

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
