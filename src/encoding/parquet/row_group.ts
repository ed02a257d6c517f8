import type { ExportedColumn } from '../../source/row_selection.ts';
import type { FingerprintPlan } from '../../source/source.ts';
import type { EncodingOptions } from '../encoder.ts';
import type { FingerprintSum } from '../fingerprint_rows.ts';
import { appendBytes, createGrowingBuffer, type GrowingBuffer } from '../memory.ts';
import { MalformedBlock, type UnrepresentableValue } from '../rows.ts';
import { hashValue, isFiltered } from './bloom_filter.ts';
import { type Codec, codecOf } from './compression.ts';
import { createDictionary, createDictionaryMemory, type DictionaryMemory } from './dictionary.ts';
import { writeDictionaryFragment } from './dictionary_pages.ts';
import { type ColumnValues, createFieldIndex, type FieldIndex, type IndexMemory } from './field_index.ts';
import { createPageWriter } from './page_writer.ts';
import { createPlainPages } from './plain_pages.ts';
import type { ColumnFragment, RowGroupFragment } from './row_group_state.ts';
import { type FileColumnValues, writtenValues } from './file_columns.ts';

const initialBytes = 64 * 1024;

/** Buffers of a column, reused from block to block. */
interface ColumnMemory {
  /** The current page. */
  readonly page: GrowingBuffer;
  /** The finished pages. */
  readonly output: GrowingBuffer;
  dictionary?: DictionaryMemory;
}

/** Creates the buffers of one column, reused for one block after the other. */
const createColumnMemory = (): ColumnMemory => ({
  page: createGrowingBuffer(initialBytes),
  output: createGrowingBuffer(initialBytes),
});

/** A column of a block. */
interface EncodedColumn {
  /** A view of the column's buffer. */
  readonly bytes: Buffer;
  readonly fragment: ColumnFragment;
}

/** Encodes one column of a block, with a dictionary where that saves space. */
interface ColumnEncoder {
  /** Encodes the values that were indexed since the last call. */
  encodePending(): void;
  /** Ends a column of `rows` rows. */
  finish(rows: number): EncodedColumn;
}

/** Starts a column, which uses the buffers of `memory`. @param hashed whether values are hashed for a bloom filter */
function createColumnEncoder(
  values: FileColumnValues,
  codec: Codec,
  memory: ColumnMemory,
  hashed: boolean,
): ColumnEncoder {
  const { type } = values.column;
  const { output } = memory;
  const writer = createPageWriter(codec, output);
  const plain = createPlainPages(values, writer, memory.page);
  let dictionary =
    type === 'text' || type === 'json'
      ? createDictionary(values, (memory.dictionary ??= createDictionaryMemory()))
      : undefined;

  const encoded = (fragment: Omit<ColumnFragment, 'bytes'>): EncodedColumn => ({
    bytes: output.bytes.subarray(0, output.length),
    fragment: { ...fragment, bytes: output.length },
  });

  return {
    encodePending() {
      // Without a dictionary the column starts again: its first values are still in the block.
      if (dictionary && !dictionary.addUntil(values.count)) dictionary = undefined;
      if (!dictionary) plain.writeUntil(values.count - (values.count % 8));
    },
    finish(rows) {
      const nulls = rows - values.count;
      if (dictionary && dictionary.entries > 0 && dictionary.entries * 2 <= values.count) {
        const present = values.present.subarray(0, rows);
        const described = writeDictionaryFragment(output, type, dictionary, present, nulls);
        return encoded({ nulls, uncompressed: output.length, pages: [], dictionary: described });
      }
      plain.finish(rows);
      const hashes = hashed ? appendHashes(output, values) : 0;
      const { uncompressed, pages } = writer;
      return encoded({ nulls, uncompressed, pages, ...(hashed && { hashes }) });
    },
  };
}

/** Appends the hashes of all values. @returns their size */
function appendHashes(output: GrowingBuffer, { view, positions, count }: ColumnValues): number {
  const hashes = new Uint32Array(count * 2);
  for (let value = 0; value < count; value += 1) {
    const start = (positions[value] ?? 0) + 4;
    hashValue(hashes, value, view, start, start + view.getInt32(start - 4));
  }
  appendBytes(output, Buffer.from(hashes.buffer), 0, hashes.byteLength);
  return hashes.byteLength;
}

/** Batch size in bytes of rows: small enough to stay in the CPU cache while all columns are encoded. */
const batchBytes = 512 * 1024;
/** Larger buffers are released after the block. */
const maxRetainedPageBytes = 64 * 1024 * 1024;
const maxRetainedFields = 4 * 1024 * 1024;

interface Memory {
  readonly index: IndexMemory;
  readonly columns: ColumnMemory[];
}

const createMemory = (): Memory => ({
  index: { positions: new Int32Array(0), present: new Uint8Array(0) },
  columns: [],
});

let memory = createMemory();

/** How pages are compressed. */
export type PageOptions = Pick<
  Extract<EncodingOptions, { file_format: 'Parquet' }>,
  'compression' | 'compression_level' | 'bloom_filters'
>;

/** What is known about the rows of a block. */
interface BlockKeys {
  /** The positions in the file of the columns by which the rows are sorted. */
  readonly sorted: readonly number[];
  /** Receives the rows that are encoded. */
  readonly fingerprint?: { readonly sum: FingerprintSum; readonly plan: FingerprintPlan };
}

/** An encoded block, which becomes a row group with others. */
export interface EncodedFragment {
  /** The bytes in a separate buffer; empty without rows. */
  readonly bytes: Buffer<ArrayBuffer>;
  readonly fragment: RowGroupFragment;
}

/**
 * Encodes a block of rows (see `RowBlock`) as a fragment of a row group. Every column is OPTIONAL. Data pages have about 1 MiB,
 * or more for a larger value. The same block always makes the same bytes. In addition to the block, memory holds the
 * compressed pages, and for each column one page and a dictionary of at most 1 MiB.
 * @param onUnrepresentable receives a row that Parquet cannot represent (its time is infinite or outside the
 * years 0001 to 9999), which is then left out; or throws
 * @throws MalformedBlock
 * @throws InvalidText
 */
export function encodeFragment(
  block: Buffer,
  rows: number,
  columns: readonly ExportedColumn[],
  { compression, compression_level, bloom_filters = false }: PageOptions,
  onUnrepresentable: (bad: UnrepresentableValue) => void,
  { sorted, fingerprint }: BlockKeys = { sorted: [] },
): EncodedFragment {
  try {
    const index = createFieldIndex(block, rows, columns, memory.index, onUnrepresentable);
    const codec = codecOf(compression, compression_level);
    const visible = index.columns
      .filter(({ column }) => column.hidden !== true)
      .map((values) => writtenValues(values, rows));
    const encoders = visible.map(({ values }, position) =>
      createColumnEncoder(
        values,
        codec,
        (memory.columns[position] ??= createColumnMemory()),
        bloom_filters && isFiltered(values.column),
      ),
    );
    for (let row = 0; index.advance(batchBytes); row = index.rows) {
      if (fingerprint) addToFingerprint(fingerprint, index, row);
      for (const { update } of visible) update();
      for (const encoder of encoders) encoder.encodePending();
    }
    const encoded = index.rows === 0 ? [] : encoders.map((encoder) => encoder.finish(index.rows));
    return {
      bytes: concatenated(encoded),
      fragment: { rows: index.rows, columns: encoded.map(({ fragment }) => fragment), sorted },
    };
  } finally {
    const pages = memory.columns.reduce(
      (sum, { page, output }) => sum + page.bytes.length + output.bytes.length,
      0,
    );
    if (pages > maxRetainedPageBytes || memory.index.positions.length > maxRetainedFields)
      memory = createMemory();
  }
}

/** Adds the indexed rows from `row` on. */
function addToFingerprint(
  { sum, plan }: NonNullable<BlockKeys['fingerprint']>,
  { columns, rows }: FieldIndex,
  row: number,
): void {
  const [times, ids] = [columns[plan.inserted_at], columns[plan.id]];
  if (times?.count !== rows || ids?.count !== rows)
    throw new MalformedBlock('A row has no id or no insertion time.');
  sum.addFields(times.block, times.positions, ids.positions, row, rows);
}

function concatenated(columns: readonly EncodedColumn[]): Buffer<ArrayBuffer> {
  const length = columns.reduce((sum, { bytes }) => sum + bytes.length, 0);
  const joint = Buffer.allocUnsafeSlow(length);
  let at = 0;
  for (const { bytes } of columns) {
    joint.set(bytes, at);
    at += bytes.length;
  }
  return joint;
}
