import { createGrowingBuffer, type GrowingBuffer } from '../growing_buffer.ts';
import { appendBytes } from '../growing_buffer.ts';
import { jsonbVersion, type ColumnValues } from './column_values.ts';

/** More different values than this, or more bytes of them, are no dictionary any more. */
const mostEntries = 16_000;
const mostBytes = 1024 * 1024;
/** After so many values there must not be more different ones than this, else the rest is not tried either. */
const sampleSize = 4_096;
const mostEntriesInSample = 1_500;
const slots = 1 << 15;

/** Memory of a dictionary, kept from column to column. */
export interface DictionaryMemory {
  /** The values in the encoding PLAIN; it never grows. */
  readonly plain: GrowingBuffer;
  /** The same memory as `plain`. */
  readonly plainView: DataView;
  /** Where each entry's bytes end in `plain`, and their hash. */
  readonly ends: Int32Array;
  readonly hashes: Int32Array;
  /** Open addressing: the number of the entry plus 1, or 0 where there is none. */
  readonly table: Uint16Array;
  /** For each value of the column the number of its entry. */
  ids: Int32Array;
}

/** Memory for the dictionary of one column, used for one row group after the other. */
export function createDictionaryMemory(): DictionaryMemory {
  const plain = createGrowingBuffer(mostBytes);
  return {
    plain,
    plainView: new DataView(plain.bytes.buffer, plain.bytes.byteOffset, plain.bytes.length),
    ends: new Int32Array(mostEntries),
    hashes: new Int32Array(mostEntries),
    table: new Uint16Array(slots),
    ids: new Int32Array(0),
  };
}

/**
 * A column's different values, and which of them each of its values is. Whether it pays depends on the values alone, so
 * that the same rows make the same bytes.
 */
export interface Dictionary {
  readonly entries: number;
  /**
   * Looks up the values that were not yet, up to the value `until`.
   * @returns false when the column has too many different ones; the dictionary is then of no more use
   */
  take(until: number): boolean;
  /** The entries in the encoding PLAIN. */
  plain(): Buffer;
  /** For each value taken the number of its entry. */
  ids(): Int32Array;
}

/** Begins the dictionary of a column of texts, JSON or uuids. It lies in `memory`. */
export function createDictionary(values: ColumnValues, memory: DictionaryMemory): Dictionary {
  const { column, positions } = values;
  const prefix = column.type === 'uuid' ? 0 : 4;
  const json = column.type === 'json';
  if (memory.ids.length < positions.length) memory.ids = new Int32Array(positions.length);
  memory.table.fill(0);
  memory.plain.length = 0;
  let taken = 0;
  let entries = 0;
  return {
    get entries() {
      return entries;
    },
    take(until) {
      const sampleEnd = Math.min(until, sampleSize);
      if (taken < sampleEnd) {
        entries = lookUp(values, memory, taken, sampleEnd, entries, prefix, json);
        if (entries < 0 || (sampleEnd === sampleSize && entries > mostEntriesInSample)) return false;
        taken = sampleEnd;
      }
      entries = lookUp(values, memory, taken, until, entries, prefix, json);
      taken = until;
      return entries >= 0;
    },
    plain: () => memory.plain.bytes.subarray(0, memory.plain.length),
    ids: () => memory.ids.subarray(0, taken),
  };
}

/** Looks up the values from `from` to `until`. @returns the number of entries then, or -1 when there are too many */
function lookUp(
  { block, view, positions }: ColumnValues,
  memory: DictionaryMemory,
  from: number,
  until: number,
  entriesBefore: number,
  prefix: number,
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
    if (length > mostBytes) return -1;
    const hash = hashOf(view, start, end);
    let slot = hash & (slots - 1);
    let entry = table[slot] ?? 0;
    while (
      entry !== 0 &&
      (hashes[entry - 1] !== hash || !isEntry(memory, entry, prefix, view, start, length))
    ) {
      slot = (slot + 1) & (slots - 1);
      entry = table[slot] ?? 0;
    }
    if (entry === 0) {
      if (entries === mostEntries || plain.length + prefix + length > mostBytes) return -1;
      if (prefix > 0) plain.length = plain.bytes.writeInt32LE(length, plain.length);
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

/** A hash of bytes, four at a time. */
function hashOf(view: DataView, start: number, end: number): number {
  let hash = end - start;
  let at = start;
  for (; at + 4 <= end; at += 4) hash = mixed(hash ^ view.getInt32(at));
  for (; at < end; at += 1) hash = mixed(hash ^ view.getUint8(at));
  return hash;
}

function mixed(hash: number): number {
  const product = Math.imul(hash, 0x9e37_79b1);
  return product ^ (product >>> 15);
}

function isEntry(
  { plainView, ends }: DictionaryMemory,
  entry: number,
  prefix: number,
  view: DataView,
  start: number,
  length: number,
): boolean {
  const from = (entry === 1 ? 0 : (ends[entry - 2] ?? 0)) + prefix;
  if ((ends[entry - 1] ?? 0) - from !== length) return false;
  let at = 0;
  for (; at + 4 <= length; at += 4)
    if (plainView.getInt32(from + at) !== view.getInt32(start + at)) return false;
  for (; at < length; at += 1) if (plainView.getUint8(from + at) !== view.getUint8(start + at)) return false;
  return true;
}
