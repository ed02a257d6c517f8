import type { FileColumnType } from './file_columns.ts';
import { appendBytes, createGrowingBuffer, type GrowingBuffer, reserve } from '../memory.ts';
import { InvalidText, isValidText } from '../rows.ts';
import { type Dictionary, hashOf } from './dictionary.ts';
import { addBytes, createPageRange, type ValueRange, valueRangeOf } from './page_range.ts';
import {
  appendHybridRuns,
  type DataPage,
  definitionLevels,
  type PageWriter,
  writeDataPage,
  writeDictionaryPage,
} from './page_writer.ts';
import type { ColumnFragment, DictionaryFragment } from './row_group_state.ts';

/**
 * Writes the entries of a dictionary, the index of each value, and the rows that have values if there are nulls.
 * @throws InvalidText
 */
export function writeDictionaryFragment(
  output: GrowingBuffer,
  type: FileColumnType,
  dictionary: Dictionary,
  present: Uint8Array,
  nulls: number,
): DictionaryFragment {
  const plain = dictionary.plain();
  const ids = new Uint16Array(dictionary.ids());
  output.length = 0;
  reserve(output, plain.length + ids.byteLength + present.length);
  for (const bytes of [plain, new Uint8Array(ids.buffer), ...(nulls > 0 ? [present] : [])]) {
    output.bytes.set(bytes, output.length);
    output.length += bytes.length;
  }
  checkTexts(plain);
  const range = type === 'json' ? undefined : rangeOf(plain, type);
  return { entries: dictionary.entries, entryBytes: plain.length, ...(range && { range }) };
}

function checkTexts(plain: Buffer): void {
  const view = new DataView(plain.buffer, plain.byteOffset, plain.length);
  for (const { start, end } of entriesOf(plain))
    if (!isValidText(plain, view, start, end)) throw new InvalidText();
}

function rangeOf(plain: Buffer, type: FileColumnType): ValueRange | undefined {
  const range = createPageRange();
  const view = new DataView(plain.buffer, plain.byteOffset, plain.length);
  for (const { start, end } of entriesOf(plain)) addBytes(range, view, start, end);
  return valueRangeOf(type, range, plain);
}

/** The entries of a dictionary in PLAIN encoding: where each value starts and ends, after its length. */
export function* entriesOf(plain: Buffer): Generator<{ readonly start: number; readonly end: number }> {
  for (let at = 0; at < plain.length;) {
    const start = at + 4;
    const end = start + plain.readInt32LE(at);
    yield { start, end };
    at = end;
  }
}

/** The three sections of a column with a dictionary. */
interface DictionarySections {
  readonly plain: Buffer;
  readonly ids: Uint16Array;
  readonly present: Uint8Array;
}

/** Reads what `writeDictionaryFragment` wrote. */
export function dictionarySections(
  bytes: Buffer,
  rows: number,
  { nulls }: Pick<ColumnFragment, 'nulls'>,
  { entryBytes }: DictionaryFragment,
): DictionarySections {
  const idsEnd = entryBytes + 2 * (rows - nulls);
  return {
    plain: bytes.subarray(0, entryBytes),
    // Copied, because the indexes may start at an odd offset.
    ids: new Uint16Array(new Uint8Array(bytes.subarray(entryBytes, idsEnd)).buffer),
    present: nulls > 0 ? bytes.subarray(idsEnd, idsEnd + rows) : allPresent(rows),
  };
}

let ones = new Uint8Array(0);

/** For each row 1. */
function allPresent(rows: number): Uint8Array {
  if (ones.length < rows) ones = new Uint8Array(rows).fill(1);
  return ones.subarray(0, rows);
}

/** Readers decode a dictionary at once, so its size is limited. */
const maxEntries = 1 << 16;
const maxBytes = 2 * 1024 * 1024;

/** A block of a column with a dictionary, and how the page index describes it. */
export interface DictionaryBlock extends DictionarySections {
  readonly entries: number;
  readonly described: Omit<DataPage, 'bytes' | 'range'> & { readonly range: DataPage['range'] | undefined };
}

/** The dictionary of a row group, joined from those of its blocks. */
interface JointDictionary {
  /**
   * Adds the entries of a block.
   * @returns its indexes in the joint dictionary, in memory that the next call uses; null when they do not fit
   */
  add(block: DictionaryBlock): Int32Array | null;
  readonly entries: number;
  plain(): Buffer;
}

/** The memory of a dictionary, reused from column to column. */
const memory = {
  plain: createGrowingBuffer(64 * 1024),
  /** Open addressing: the index of the entry plus 1; 0 is empty. */
  table: new Int32Array(maxEntries * 2),
  /** The end of each entry in `plain`, and its hash. */
  ends: new Int32Array(maxEntries),
  hashes: new Int32Array(maxEntries),
  /** The indexes of the values of a block, and the page that has them. */
  ids: new Int32Array(0),
  page: createGrowingBuffer(64 * 1024),
};

/** Starts the dictionary of a column of a row group. There can be only one at a time. */
export function createJointDictionary(): JointDictionary {
  let entries = 0;
  const { plain, table, ends, hashes } = memory;
  plain.length = 0;
  let isClear = false;

  const isEntry = (entry: number, hash: number, source: Buffer, start: number, end: number): boolean => {
    if (hashes[entry] !== hash) return false;
    const from = entry === 0 ? 0 : (ends[entry - 1] ?? 0);
    return source.compare(plain.bytes, from, ends[entry], start, end) === 0;
  };

  /** Adds the entries of a block that are new. @returns the index of each */
  const addEntries = ({ plain: source, entries: count }: DictionaryBlock): Uint16Array => {
    if (!isClear) table.fill(0);
    isClear = true;
    const view = new DataView(source.buffer, source.byteOffset, source.length);
    const indexes = new Uint16Array(count);
    let start = 0;
    for (let entry = 0; entry < count; entry += 1) {
      const end = start + 4 + source.readInt32LE(start);
      const hash = hashOf(view, start, end);
      let slot = hash & (table.length - 1);
      let found = table[slot] ?? 0;
      while (found !== 0 && !isEntry(found - 1, hash, source, start, end)) {
        slot = (slot + 1) & (table.length - 1);
        found = table[slot] ?? 0;
      }
      if (found === 0) {
        appendBytes(plain, source, start, end);
        ends[entries] = plain.length;
        hashes[entries] = hash;
        entries += 1;
        table[slot] = found = entries;
      }
      indexes[entry] = found - 1;
      start = end;
    }
    return indexes;
  };

  return {
    get entries() {
      return entries;
    },
    plain: () => plain.bytes.subarray(0, plain.length),
    add(block) {
      const { ids } = block;
      if (entries + block.entries > maxEntries || plain.length + block.plain.length > maxBytes) return null;
      const indexes = addEntries(block);
      if (memory.ids.length < ids.length) memory.ids = new Int32Array(ids.length);
      const joint = memory.ids;
      for (let value = 0; value < ids.length; value += 1) joint[value] = indexes[ids[value] ?? 0] ?? 0;
      return joint.subarray(0, ids.length);
    },
  };
}

/** Writes a data page of indexes. Its bit width is that of the entries which the dictionary has by then. */
export function writeIndexPage(
  writer: PageWriter,
  { present, described }: DictionaryBlock,
  ids: Int32Array,
  entries: number,
): void {
  const bitWidth = Math.max(1, 32 - Math.clz32(entries - 1));
  const page = startPage(present, described.nulls);
  page.bytes[page.length] = bitWidth;
  page.length += 1;
  appendHybridRuns(page, ids, ids.length, bitWidth);
  writeDataPage(writer, page.bytes.subarray(0, page.length), described, 'RLE_DICTIONARY');
}

/** Starts the page in memory that every page uses, with its definition levels. */
function startPage(present: Uint8Array, nulls: number): GrowingBuffer {
  const { page } = memory;
  const levels = definitionLevels(present, nulls);
  page.length = 0;
  reserve(page, levels.length + 1);
  appendBytes(page, levels, 0, levels.length);
  return page;
}

/** Writes a block whose entries did not fit as a PLAIN page. */
export function writeExpandedPage(
  writer: PageWriter,
  { plain, ids, present, described }: DictionaryBlock,
): void {
  const page = startPage(present, described.nulls);
  const entries = [...entriesOf(plain)];
  for (const id of ids) {
    const entry = entries[id];
    if (entry) appendBytes(page, plain, entry.start - 4, entry.end);
  }
  writeDataPage(writer, page.bytes.subarray(0, page.length), described, 'PLAIN');
}

/** The dictionary page, which is the first of its column. */
export const writeJointDictionary = (writer: PageWriter, dictionary: JointDictionary): void =>
  writeDictionaryPage(writer, dictionary.plain(), dictionary.entries);
