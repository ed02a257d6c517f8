import { appendBytes, createGrowingBuffer, type GrowingBuffer } from '../growing_buffer.ts';
import { hashValue } from './bloom_filter.ts';
import type { ColumnValues } from './column_values.ts';
import type { Codec } from './compression.ts';
import { createDictionary, createDictionaryMemory, type DictionaryMemory } from './dictionary.ts';
import { writeDictionaryFragment } from './dictionary_fragment.ts';
import { createPageWriter } from './page_writer.ts';
import { createPlainPages } from './plain_pages.ts';
import type { ColumnFragment } from './row_group_fragment.ts';

const initialBytes = 64 * 1024;

/** Buffers of a column, reused from block to block. */
export interface ColumnMemory {
  /** The current page. */
  readonly page: GrowingBuffer;
  /** The finished pages. */
  readonly output: GrowingBuffer;
  dictionary?: DictionaryMemory;
}

/** Creates the buffers of one column, reused for one block after the other. */
export const createColumnMemory = (): ColumnMemory => ({
  page: createGrowingBuffer(initialBytes),
  output: createGrowingBuffer(initialBytes),
});

/** A column of a block. */
export interface EncodedColumn {
  /** A view of the column's buffer. */
  readonly bytes: Buffer;
  readonly fragment: ColumnFragment;
}

/** Encodes one column of a block, with a dictionary where that saves space. */
export interface ColumnEncoder {
  /** Encodes the values that were indexed since the last call. */
  encodePending(): void;
  /** Ends a column of `rows` rows. */
  finish(rows: number): EncodedColumn;
}

/** Starts a column, which uses the buffers of `memory`. @param hashed whether values are hashed for a bloom filter */
export function createColumnEncoder(
  values: ColumnValues,
  codec: Codec,
  memory: ColumnMemory,
  hashed: boolean,
): ColumnEncoder {
  const { type } = values.column;
  const { output } = memory;
  const writer = createPageWriter(codec, output);
  const plain = createPlainPages(values, writer, memory.page);
  let dictionary =
    type === 'text' || type === 'json' || type === 'uuid'
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
