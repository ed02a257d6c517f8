import { reserve, type GrowingBuffer } from '../growing_buffer.ts';
import { appendBytes } from '../json_values.ts';
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
  /** The values in the encoding PLAIN. */
  readonly plain: GrowingBuffer;
  /** Where each entry's bytes end in `plain`. */
  readonly ends: Int32Array;
  /** Open addressing: the number of the entry plus 1, or 0 where there is none. */
  readonly table: Uint16Array;
  /** For each value of the column the number of its entry. */
  ids: Int32Array;
}

export const createDictionaryMemory = (plain: GrowingBuffer): DictionaryMemory => ({
  plain,
  ends: new Int32Array(mostEntries),
  table: new Uint16Array(slots),
  ids: new Int32Array(0),
});

/** A column's different values, and which of them each of its values is. */
export interface Dictionary {
  readonly entries: number;
  readonly plain: Buffer;
  readonly ids: Int32Array;
}

/**
 * The dictionary of a column of texts, JSON or uuids; undefined where it would not pay, which depends on the values
 * alone, so that the same rows make the same bytes. It shares `memory`.
 */
export function buildDictionary(values: ColumnValues, memory: DictionaryMemory): Dictionary | undefined {
  const { block, view, positions, column } = values;
  const prefix = column.type === 'uuid' ? 0 : 4;
  const json = column.type === 'json';
  const { plain, table, ends } = memory;
  if (memory.ids.length < positions.length) memory.ids = new Int32Array(positions.length);
  const { ids } = memory;
  table.fill(0);
  plain.length = 0;
  let entries = 0;
  for (let index = 0; index < positions.length; index += 1) {
    if (index === sampleSize && entries > mostEntriesInSample) return undefined;
    const position = positions[index] ?? 0;
    const end = position + 4 + view.getInt32(position);
    let start = position + 4;
    if (json && start < end && block[start] === jsonbVersion) start += 1;
    const length = end - start;
    if (length > mostBytes) return undefined;
    let slot = hashOf(block, start, end) & (slots - 1);
    let entry = table[slot] ?? 0;
    while (entry !== 0 && !isEntry(memory, entry, prefix, block, start, length)) {
      slot = (slot + 1) & (slots - 1);
      entry = table[slot] ?? 0;
    }
    if (entry === 0) {
      if (entries === mostEntries || plain.length + prefix + length > mostBytes) return undefined;
      if (prefix > 0) {
        reserve(plain, prefix);
        plain.length = plain.bytes.writeInt32LE(length, plain.length);
      }
      appendBytes(plain, block, start, end);
      ends[entries] = plain.length;
      entries += 1;
      table[slot] = entries;
      entry = entries;
    }
    ids[index] = entry - 1;
  }
  return entries * 2 > positions.length || entries === 0
    ? undefined
    : { entries, plain: plain.bytes.subarray(0, plain.length), ids: ids.subarray(0, positions.length) };
}

/** FNV-1a, its high bits folded in. */
function hashOf(block: Buffer, start: number, end: number): number {
  let hash = end - start;
  for (let at = start; at < end; at += 1) hash = Math.imul(hash ^ (block[at] ?? 0), 16_777_619);
  return hash ^ (hash >>> 15);
}

function isEntry(
  { plain: { bytes }, ends }: DictionaryMemory,
  entry: number,
  prefix: number,
  block: Buffer,
  start: number,
  length: number,
): boolean {
  const from = (entry === 1 ? 0 : (ends[entry - 2] ?? 0)) + prefix;
  if ((ends[entry - 1] ?? 0) - from !== length) return false;
  for (let at = 0; at < length; at += 1) if (bytes[from + at] !== block[start + at]) return false;
  return true;
}
