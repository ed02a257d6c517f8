import { ByteWriter } from 'hyparquet-writer';
import { writeRleBitPackedHybrid } from 'hyparquet-writer/src/encoding.js';
import type { Dictionary } from './dictionary.ts';
import {
  definitionLevels,
  pageBytes,
  endOfRowsWith,
  writeDataPage,
  writeDictionaryPage,
  type PageWriter,
} from './page_writer.ts';

/**
 * Writes a column as a dictionary page and data pages of entry indexes. `present` is 1 for rows with a value.
 * @returns the size of the dictionary page in bytes
 */
export function writeDictionaryPages(
  writer: PageWriter,
  dictionary: Dictionary,
  present: Uint8Array,
): number {
  const ids = dictionary.ids();
  writeDictionaryPage(writer, dictionary.plain(), dictionary.entries);
  const dictionaryBytes = writer.output.length;
  const bitWidth = Math.max(1, 32 - Math.clz32(dictionary.entries - 1));
  const valuesInPage = Math.floor((pageBytes * 8) / bitWidth);
  let row = 0;
  for (let value = 0; value < ids.length; value += valuesInPage) {
    const nextValue = Math.min(ids.length, value + valuesInPage);
    // The last page includes trailing nulls.
    const nextRow =
      nextValue === ids.length ? present.length : endOfRowsWith(present, row, nextValue - value);
    const page = new ByteWriter(64 * 1024);
    page.appendBytes(definitionLevels(present.subarray(row, nextRow)));
    page.appendUint8(bitWidth);
    writeRleBitPackedHybrid(page, ids.subarray(value, nextValue), bitWidth);
    writeDataPage(writer, Buffer.from(page.buffer, 0, page.offset), nextRow - row, 'RLE_DICTIONARY');
    row = nextRow;
  }
  return dictionaryBytes;
}
