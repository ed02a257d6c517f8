import { ByteWriter } from 'hyparquet-writer';
import { writeRleBitPackedHybrid } from 'hyparquet-writer/src/encoding.js';
import type { GrowingBuffer } from '../growing_buffer.ts';
import { reserve } from '../growing_buffer.ts';
import type { ColumnValues } from './column_values.ts';
import type { Codec } from './compression.ts';
import { buildDictionary, type Dictionary, type DictionaryMemory } from './dictionary.ts';
import {
  createPageWriter,
  definitionLevels,
  definitionLevelsBound,
  writeDataPage,
  writeDictionaryPage,
  type PageWriter,
} from './page_writer.ts';
import { appendPlain, type NumberRange } from './plain.ts';
import type { ColumnChunk } from './row_group_state.ts';

/** Bytes of values after which a data page ends; the value that reaches it is still in it. */
const pageBytes = 1024 * 1024;

/** Memory that is used for one column after the other. */
export interface ColumnMemory {
  readonly page: GrowingBuffer;
  readonly dictionary: DictionaryMemory;
}

/** The bytes of a column's pages, in pieces, and what the footer has to say of them. */
export interface EncodedColumn {
  readonly pieces: readonly Uint8Array[];
  readonly chunk: ColumnChunk;
}

/** Encodes one column of a row group: with a dictionary where that pays, else plain. */
export function encodeColumn(values: ColumnValues, codec: Codec, memory: ColumnMemory): EncodedColumn {
  const writer = createPageWriter(codec);
  const range: NumberRange = { min: Infinity, max: -Infinity };
  const { type } = values.column;
  const dictionary =
    type === 'text' || type === 'json' || type === 'uuid'
      ? buildDictionary(values, memory.dictionary)
      : undefined;
  let dictionaryBytes: number | undefined;
  if (dictionary) {
    writeDictionaryPage(writer, dictionary.plain, dictionary.entries);
    dictionaryBytes = writer.compressed;
    writeDictionaryIds(writer, values, dictionary);
  } else writePlain(writer, values, memory.page, range);
  return {
    pieces: writer.pieces,
    chunk: {
      compressed: writer.compressed,
      uncompressed: writer.uncompressed,
      nulls: values.present.length - values.positions.length,
      ...(dictionaryBytes === undefined ? {} : { dictionary: dictionaryBytes }),
      ...(Number.isSafeInteger(range.min) && Number.isSafeInteger(range.max) ? range : {}),
    },
  };
}

function writePlain(writer: PageWriter, values: ColumnValues, page: GrowingBuffer, range: NumberRange): void {
  const { positions, present } = values;
  let value = 0;
  let row = 0;
  do {
    // Levels stand in front of the values, but their size is only known when the page has ended.
    const valuesAt = definitionLevelsBound(present.length - row);
    page.length = 0;
    reserve(page, valuesAt);
    page.length = valuesAt;
    const nextValue = appendPlain(page, values, value, valuesAt + pageBytes, range);
    const nextRow = rowsWith(present, row, nextValue - value, nextValue === positions.length);
    const levels = definitionLevels(present.subarray(row, nextRow));
    page.bytes.set(levels, valuesAt - levels.length);
    writeDataPage(writer, page.bytes.subarray(valuesAt - levels.length, page.length), nextRow - row, 'PLAIN');
    value = nextValue;
    row = nextRow;
  } while (row < present.length);
}

function writeDictionaryIds(writer: PageWriter, values: ColumnValues, { entries, ids }: Dictionary): void {
  const { present } = values;
  const bitWidth = Math.max(1, 32 - Math.clz32(entries - 1));
  const valuesInPage = Math.floor((pageBytes * 8) / bitWidth);
  let value = 0;
  let row = 0;
  do {
    const nextValue = Math.min(ids.length, value + valuesInPage);
    const nextRow = rowsWith(present, row, nextValue - value, nextValue === ids.length);
    const page = new ByteWriter(64 * 1024);
    page.appendBytes(definitionLevels(present.subarray(row, nextRow)));
    page.appendUint8(bitWidth);
    writeRleBitPackedHybrid(page, ids.subarray(value, nextValue), bitWidth);
    writeDataPage(writer, Buffer.from(page.buffer, 0, page.offset), nextRow - row, 'RLE_DICTIONARY');
    value = nextValue;
    row = nextRow;
  } while (row < present.length);
}

/** The end of the rows from `row` on that hold so many values; the last page takes the nulls at the end too. */
function rowsWith(present: Uint8Array, row: number, values: number, last: boolean): number {
  if (last) return present.length;
  let end = row;
  for (let left = values; left > 0; end += 1) left -= present[end] ?? 0;
  return end;
}
