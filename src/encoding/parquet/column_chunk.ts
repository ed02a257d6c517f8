import { createGrowingBuffer, type GrowingBuffer } from '../growing_buffer.ts';
import type { ColumnValues } from './column_values.ts';
import type { Codec } from './compression.ts';
import { createDictionary, createDictionaryMemory, type DictionaryMemory } from './dictionary.ts';
import { writeDictionaryPages } from './dictionary_pages.ts';
import { createPageWriter } from './page_writer.ts';
import { createPlainPages } from './plain_pages.ts';
import type { ColumnChunk } from './row_group_state.ts';

const initialBytes = 64 * 1024;

/** Memory of a column, kept from block to block. */
export interface ColumnMemory {
  /** The page that is being filled. */
  readonly page: GrowingBuffer;
  /** The pages that are done. */
  readonly output: GrowingBuffer;
  dictionary?: DictionaryMemory;
}

/** Memory for one column, used for one row group after the other. */
export const createColumnMemory = (): ColumnMemory => ({
  page: createGrowingBuffer(initialBytes),
  output: createGrowingBuffer(initialBytes),
});

/** A column's pages and what the footer has to say of them. */
export interface EncodedColumn {
  /** It lies in the column's memory. */
  readonly bytes: Buffer;
  readonly chunk: ColumnChunk;
}

/** Encodes one column of a row group: with a dictionary where that pays, else plain. */
export interface ColumnEncoder {
  /** Takes in what has been noted of the column since the last call. */
  take(): void;
  /** Ends the column, which has so many rows. */
  finish(rows: number): EncodedColumn;
}

/** Begins a column. What it holds lies in `memory`. */
export function createColumnEncoder(values: ColumnValues, codec: Codec, memory: ColumnMemory): ColumnEncoder {
  const { type } = values.column;
  const writer = createPageWriter(codec, memory.output);
  const plain = createPlainPages(values, writer, memory.page);
  let dictionary =
    type === 'text' || type === 'json' || type === 'uuid'
      ? createDictionary(values, (memory.dictionary ??= createDictionaryMemory()))
      : undefined;
  return {
    take() {
      // Without its dictionary the column begins anew: its first values are still in the block.
      if (dictionary && !dictionary.take(values.count)) dictionary = undefined;
      if (!dictionary) plain.take(values.count - (values.count % 8));
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
