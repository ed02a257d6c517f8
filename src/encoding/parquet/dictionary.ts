import { appendBytes, createGrowingBuffer, type GrowingBuffer } from '../memory.ts';
import { jsonbVersion } from './field_index.ts';
import type { FileColumnValues } from './file_columns.ts';

/** A column with more distinct values, or more bytes of them, gets no dictionary. */
const maxEntries = 16_000;
const maxBytes = 1024 * 1024;
/** If the first `sampleSize` values have more distinct values than this, the rest is not tried. */
const sampleSize = 4_096;
const maxEntriesInSample = 1_500;
const slots = 1 << 15;

/** Buffers of a dictionary, reused from column to column. */
export interface DictionaryMemory {
  /** The distinct values in PLAIN encoding. It never grows. */
  readonly plain: GrowingBuffer;
  /** The same memory as `plain`. */
  readonly plainView: DataView;
  /** The end of each entry in `plain`, and its hash. */
  readonly ends: Int32Array;
  readonly hashes: Int32Array;
  /** Open addressing: the index of the entry plus 1; 0 is empty. */
  readonly table: Uint16Array;
  /** The index of the entry of each value of the column. */
  ids: Int32Array;
}

/** Creates the buffers of one column's dictionary, reused for one row group after the other. */
export function createDictionaryMemory(): DictionaryMemory {
  const plain = createGrowingBuffer(maxBytes);
  return {
    plain,
    plainView: new DataView(plain.bytes.buffer, plain.bytes.byteOffset, plain.bytes.length),
    ends: new Int32Array(maxEntries),
    hashes: new Int32Array(maxEntries),
    table: new Uint16Array(slots),
    ids: new Int32Array(0),
  };
}

/**
 * The distinct values of a column, and for each value the index of its entry. Whether a dictionary is used depends on
 * the values only, so that the same rows make the same bytes.
 */
export interface Dictionary {
  readonly entries: number;
  /**
   * Adds the values up to index `until` that were not added yet.
   * @returns false when the column has too many distinct values; the dictionary is then unusable
   */
  addUntil(until: number): boolean;
  /** The entries in PLAIN encoding. */
  plain(): Buffer;
  /** The index of the entry of each added value. */
  ids(): Int32Array;
}

/** Starts the dictionary of a column of strings or JSON, which uses the buffers of `memory`. */
export function createDictionary(values: FileColumnValues, memory: DictionaryMemory): Dictionary {
  const { column, positions } = values;
  const json = column.type === 'json';
  if (memory.ids.length < positions.length) memory.ids = new Int32Array(positions.length);
  memory.table.fill(0);
  memory.plain.length = 0;
  let added = 0;
  let entries = 0;
  const add = (until: number, limit: number): boolean => {
    entries = addValues(values, memory, added, until, entries, limit, json);
    added = until;
    return entries >= 0;
  };
  return {
    get entries() {
      return entries;
    },
    addUntil(until) {
      const sampleEnd = Math.min(until, sampleSize);
      if (added < sampleEnd && !add(sampleEnd, maxEntriesInSample)) return false;
      return add(until, maxEntries);
    },
    plain: () => memory.plain.bytes.subarray(0, memory.plain.length),
    ids: () => memory.ids.subarray(0, added),
  };
}

/** Adds the values from `from` to `until`. @returns the number of entries, or -1 when there are more than `limit` */
function addValues(
  { block, view, positions }: FileColumnValues,
  memory: DictionaryMemory,
  from: number,
  until: number,
  entriesBefore: number,
  limit: number,
  json: boolean,
): number {
  const { plain, table, ends, hashes, ids } = memory;
  let entries = entriesBefore;
  for (let index = from; index < until; index += 1) {
    const position = positions[index] ?? 0;
    const end = position + 4 + view.getInt32(position);
    let start = position + 4;
    if (json && start < end && block[start] === jsonbVersion) start += 1;
    const length = end - start;
    if (length > maxBytes) return -1;
    const hash = hashOf(view, start, end);
    let slot = hash & (slots - 1);
    let entry = table[slot] ?? 0;
    while (entry !== 0 && (hashes[entry - 1] !== hash || !isEntry(memory, entry, view, start, length))) {
      slot = (slot + 1) & (slots - 1);
      entry = table[slot] ?? 0;
    }
    if (entry === 0) {
      if (entries === limit || plain.length + 4 + length > maxBytes) return -1;
      plain.length = plain.bytes.writeInt32LE(length, plain.length);
      appendBytes(plain, block, start, end);
      ends[entries] = plain.length;
      hashes[entries] = hash;
      entries += 1;
      table[slot] = entries;
      entry = entries;
    }
    ids[index] = entry - 1;
  }
  return entries;
}

/** Hashes bytes, eight at a time in two independent halves; the last eight may overlap others. */
export function hashOf(view: DataView, start: number, end: number): number {
  let one = end - start;
  let two = one;
  let at = start;
  for (; at + 8 <= end; at += 8) {
    one = addWord(one, view.getInt32(at));
    two = addWord(two, view.getInt32(at + 4));
  }
  if (at < end)
    if (at > start) {
      one = addWord(one, view.getInt32(end - 8));
      two = addWord(two, view.getInt32(end - 4));
    } else if (at + 4 <= end) {
      one = addWord(one, view.getInt32(at));
      two = addWord(two, view.getInt32(end - 4));
    } else for (; at < end; at += 1) one = addWord(one, view.getUint8(at));
  const hash = Math.imul(one ^ (two << 16) ^ (two >>> 16), multiplier);
  return hash ^ (hash >>> 15);
}

const multiplier = 0x9e37_79b1;

const addWord = (hash: number, word: number): number =>
  Math.imul(((hash << 13) | (hash >>> 19)) ^ word, multiplier);

function isEntry(
  { plainView, ends }: DictionaryMemory,
  entry: number,
  view: DataView,
  start: number,
  length: number,
): boolean {
  const from = (entry === 1 ? 0 : (ends[entry - 2] ?? 0)) + 4;
  if ((ends[entry - 1] ?? 0) - from !== length) return false;
  let at = 0;
  for (; at + 4 <= length; at += 4)
    if (plainView.getInt32(from + at) !== view.getInt32(start + at)) return false;
  if (at === length) return true;
  if (at > 0) return plainView.getInt32(from + length - 4) === view.getInt32(start + length - 4);
  for (; at < length; at += 1) if (plainView.getUint8(from + at) !== view.getUint8(start + at)) return false;
  return true;
}
