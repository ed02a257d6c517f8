import { createGrowingBuffer, type GrowingBuffer } from '../growing_buffer.ts';
import type { ColumnValues } from './column_values.ts';
import type { Codec } from './compression.ts';
import { createDictionary, createDictionaryMemory, type DictionaryMemory } from './dictionary.ts';
import { writeDictionaryPages } from './dictionary_pages.ts';
import { createPageWriter } from './page_writer.ts';
import { createPlainPages } from './plain_pages.ts';
import type { ColumnChunk } from './row_group_state.ts';

const initialBytes = 64 * 1024;

/** Buffers of a column, reused from block to block. */
export interface ColumnMemory {
  /** The current page. */
  readonly page: GrowingBuffer;
  /** The finished pages. */
  readonly output: GrowingBuffer;
  dictionary?: DictionaryMemory;
}

/** Creates the buffers of one column, reused for one row group after the other. */
export const createColumnMemory = (): ColumnMemory => ({
  page: createGrowingBuffer(initialBytes),
  output: createGrowingBuffer(initialBytes),
});

/** The pages of a column, and its metadata for the footer. */
export interface EncodedColumn {
  /** A view of the column's buffer. */
  readonly bytes: Buffer;
  readonly chunk: ColumnChunk;
}

/** Encodes one column of a row group, with a dictionary where that saves space. */
export interface ColumnEncoder {
  /** Encodes the values that were indexed since the last call. */
  encodePending(): void;
  /** Ends a column of `rows` rows. */
  finish(rows: number): EncodedColumn;
}

/** Starts a column, which uses the buffers of `memory`. */
export function createColumnEncoder(values: ColumnValues, codec: Codec, memory: ColumnMemory): ColumnEncoder {
  const { type } = values.column;
  const writer = createPageWriter(codec, memory.output);
  const plain = createPlainPages(values, writer, memory.page);
  let dictionary =
    type === 'text' || type === 'json' || type === 'uuid'
      ? createDictionary(values, (memory.dictionary ??= createDictionaryMemory()))
      : undefined;
  return {
    encodePending() {
      // Without a dictionary the column starts again: its first values are still in the block.
      if (dictionary && !dictionary.addUntil(values.count)) dictionary = undefined;
      if (!dictionary) plain.writeUntil(values.count - (values.count % 8));
    },
    finish(rows) {
      const { range } = plain;
      let dictionaryBytes: number | undefined;
      if (dictionary && dictionary.entries > 0 && dictionary.entries * 2 <= values.count)
        dictionaryBytes = writeDictionaryPages(writer, dictionary, values.present.subarray(0, rows));
      else plain.finish(rows);
      return {
        bytes: memory.output.bytes.subarray(0, memory.output.length),
        chunk: {
          compressed: memory.output.length,
          uncompressed: writer.uncompressed,
          nulls: rows - values.count,
          ...(dictionaryBytes === undefined ? {} : { dictionary: dictionaryBytes }),
          ...(Number.isSafeInteger(range.min) && Number.isSafeInteger(range.max) ? range : {}),
        },
      };
    },
  };
}
