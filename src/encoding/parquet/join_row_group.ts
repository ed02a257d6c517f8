import type { ExportedColumn } from '../../source/row_selection.ts';
import type { EncoderState } from '../encoder.ts';
import { createGrowingBuffer, type GrowingBuffer } from '../memory.ts';
import type { ParquetOptions } from '../parquet_encoder.ts';
import { bloomFilterOf, hashValue, isFiltered, type ValueHashes } from './bloom_filter.ts';
import { type Codec, codecOf } from './compression.ts';
import {
  createJointDictionary,
  type DictionaryBlock,
  dictionarySections,
  entriesOf,
  writeExpandedPage,
  writeIndexPage,
  writeJointDictionary,
} from './dictionary_pages.ts';
import { joinRanges } from './page_range.ts';
import { createPageWriter, type DataPage } from './page_writer.ts';
import type { EncodedFragment, PageOptions } from './row_group.ts';
import type { ColumnChunk, ColumnFragment, RowGroup, RowGroupFragment } from './row_group_state.ts';
import { type FileColumn, fileColumns } from './file_columns.ts';

/** An encoded row group, and its metadata for the footer. */
export interface EncodedRowGroup {
  /** The bytes in a separate buffer; empty without rows. */
  readonly bytes: Buffer<ArrayBuffer>;
  readonly rowGroup: RowGroup;
}

/** A column of a block with its bytes. */
interface ColumnOfBlock {
  readonly bytes: Buffer;
  readonly rows: number;
  readonly fragment: ColumnFragment;
}

/** A column chunk: its metadata, and its bytes as slices in order. */
interface JoinedColumn {
  readonly chunk: ColumnChunk;
  readonly slices: readonly Buffer[];
  readonly filter?: Buffer;
}

/** The index pages of each column, reused from row group to row group. */
const memory: GrowingBuffer[] = [];

/** Joins the fragments of consecutive blocks to one row group. Their dictionaries become one per column. */
export function joinRowGroup(
  fragments: readonly EncodedFragment[],
  given: readonly ExportedColumn[],
  options: PageOptions,
): EncodedRowGroup {
  const columns = fileColumns(given);
  // A block may consist of rejected rows only.
  const blocks = fragments.filter(({ fragment }) => fragment.rows > 0);
  const ends = blocks.map(() => 0);
  const codec = codecOf(options.compression, options.compression_level);
  const joined = (blocks.length === 0 ? [] : columns).map((column, position): JoinedColumn => {
    const ofBlocks = blocks.map(({ bytes, fragment: { rows, columns: described } }, index): ColumnOfBlock => {
      const fragment = described[position];
      if (!fragment) throw new TypeError(`A block has no column ${column.name}.`);
      const start = ends[index] ?? 0;
      ends[index] = start + fragment.bytes;
      return { rows, fragment, bytes: bytes.subarray(start, start + fragment.bytes) };
    });
    const output = (memory[position] ??= createGrowingBuffer(64 * 1024));
    const { slices, chunk } = joinColumn(column, ofBlocks, codec, output);
    if (!options.bloom_filters || !isFiltered(column)) return { slices, chunk };
    const filter = bloomFilterOf(ofBlocks.map((block) => hashesOf(block)));
    return { slices, filter, chunk: { ...chunk, filter: filter.length } };
  });
  // Bloom filters follow the last chunk, in the order of their columns.
  const slices = [
    ...joined.flatMap((column) => column.slices),
    ...joined.flatMap(({ filter }) => filter ?? []),
  ];
  const bytes = Buffer.allocUnsafeSlow(slices.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const slice of slices) at += slice.copy(bytes, at);
  return {
    bytes,
    rowGroup: {
      rows: blocks.reduce((sum, { fragment }) => sum + fragment.rows, 0),
      sorted: blocks[0]?.fragment.sorted ?? [],
      columns: joined.map(({ chunk }) => chunk),
    },
  };
}

function joinColumn(
  { type }: FileColumn,
  blocks: readonly ColumnOfBlock[],
  codec: Codec,
  output: GrowingBuffer,
): JoinedColumn {
  const dictionary = createJointDictionary();
  const writer = createPageWriter(codec, output);
  /** Pages of blocks, or the ends of pages in `output`. */
  const parts: (Buffer | number)[] = [];
  const pages: DataPage[] = [];
  let uncompressed = 0;
  for (const { bytes, rows, fragment } of blocks) {
    if (!fragment.dictionary) {
      parts.push(bytes.subarray(0, bytes.length - (fragment.hashes ?? 0)));
      pages.push(...fragment.pages);
      uncompressed += fragment.uncompressed;
      continue;
    }
    const { nulls } = fragment;
    const block: DictionaryBlock = {
      ...dictionarySections(bytes, rows, fragment, fragment.dictionary),
      entries: fragment.dictionary.entries,
      described: { rows, nulls, range: fragment.dictionary.range },
    };
    const ids = dictionary.add(block);
    if (ids) writeIndexPage(writer, block, ids, dictionary.entries);
    else writeExpandedPage(writer, block);
    parts.push(output.length);
    pages.push(...writer.pages.slice(-1));
  }
  const pagesEnd = output.length;
  // Complete only now, although it is the first page of the chunk.
  if (dictionary.entries > 0) writeJointDictionary(writer, dictionary);
  const dictionaryPage = output.bytes.subarray(pagesEnd, output.length);
  const slices = [dictionaryPage, ...slicesOf(parts, output)];
  const nulls = blocks.reduce((sum, { fragment }) => sum + fragment.nulls, 0);
  const range = joinRanges(
    type,
    pages.map((page) => ({ hasValues: page.nulls < page.rows, range: page.range })),
  );
  return {
    slices,
    chunk: {
      compressed: slices.reduce((sum, { length }) => sum + length, 0),
      uncompressed: uncompressed + writer.uncompressed,
      nulls,
      ...(dictionary.entries > 0 && { dictionary: dictionaryPage.length }),
      ...(range && { range }),
      pages,
    },
  };
}

/** The hashes of the values of a block, or of its dictionary's. */
function hashesOf({ bytes, fragment }: ColumnOfBlock): ValueHashes {
  const { dictionary, hashes: size = 0 } = fragment;
  // Copied, because they may start at any offset.
  if (!dictionary) return new Uint32Array(new Uint8Array(bytes.subarray(bytes.length - size)).buffer);
  const plain = bytes.subarray(0, dictionary.entryBytes);
  const view = new DataView(plain.buffer, plain.byteOffset, plain.length);
  const hashes = new Uint32Array(dictionary.entries * 2);
  let entry = 0;
  for (const { start, end } of entriesOf(plain)) {
    hashValue(hashes, entry, view, start, end);
    entry += 1;
  }
  return hashes;
}

function* slicesOf(parts: readonly (Buffer | number)[], { bytes }: GrowingBuffer): Generator<Buffer> {
  let start = 0;
  for (const part of parts) {
    if (typeof part !== 'number') yield part;
    else {
      yield bytes.subarray(start, part);
      start = part;
    }
  }
}

/** A task of a thread: join encoded blocks to a row group. */
export interface JoiningTask {
  readonly id: number;
  readonly options: ParquetOptions;
  readonly columns: readonly ExportedColumn[];
  readonly blocks: readonly { readonly bytes: Uint8Array<ArrayBuffer>; readonly state: EncoderState }[];
}

/** Blocks that were joined. */
export interface JoinedBlocks {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly state: EncoderState;
}

/** Joins the blocks of a task. */
export function joinBlocks({ options, columns, blocks }: Omit<JoiningTask, 'id'>): JoinedBlocks {
  const { bytes, rowGroup } = joinRowGroup(
    blocks.map(({ bytes, state }) => ({
      bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length),
      // `encodeBlock` of the same process returned it.
      fragment: state as RowGroupFragment,
    })),
    columns,
    options,
  );
  return { bytes: new Uint8Array(bytes.buffer), state: rowGroup };
}
