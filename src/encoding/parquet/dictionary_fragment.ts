import type { ColumnType } from '../../source/columns.ts';
import { reserve, type GrowingBuffer } from '../growing_buffer.ts';
import { InvalidText, isValidText } from '../invalid_text.ts';
import type { Dictionary } from './dictionary.ts';
import { addBytes, createPageRange, valueRangeOf, type ValueRange } from './page_range.ts';
import type { ColumnFragment, DictionaryFragment } from './row_group_fragment.ts';

/**
 * Writes the entries of a dictionary, the index of each value, and the rows that have values if there are nulls.
 * @throws InvalidText
 */
export function writeDictionaryFragment(
  output: GrowingBuffer,
  type: ColumnType,
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
  if (type !== 'uuid') checkTexts(plain, type);
  const range = type === 'json' ? undefined : rangeOf(plain, type);
  return { entries: dictionary.entries, entryBytes: plain.length, ...(range && { range }) };
}

function checkTexts(plain: Buffer, type: ColumnType): void {
  const view = new DataView(plain.buffer, plain.byteOffset, plain.length);
  for (const { start, end } of entriesOf(plain, type))
    if (!isValidText(plain, view, start, end)) throw new InvalidText();
}

function rangeOf(plain: Buffer, type: ColumnType): ValueRange | undefined {
  const range = createPageRange();
  const view = new DataView(plain.buffer, plain.byteOffset, plain.length);
  for (const { start, end } of entriesOf(plain, type)) addBytes(range, view, start, end);
  return valueRangeOf(type, range, plain);
}

/** The entries of a dictionary in PLAIN encoding: where each value starts and ends, after its length if it has one. */
export function* entriesOf(
  plain: Buffer,
  type: ColumnType,
): Generator<{ readonly start: number; readonly end: number }> {
  for (let at = 0; at < plain.length;) {
    const start = type === 'uuid' ? at : at + 4;
    const end = type === 'uuid' ? at + 16 : start + plain.readInt32LE(at);
    yield { start, end };
    at = end;
  }
}

/** The three sections of a column with a dictionary. */
export interface DictionarySections {
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
