import { dayLength, timestampLength, writeDate, writeTimestamp } from '../source/sort_key.ts';
import { appendBytes, type GrowingBuffer, reserve } from './memory.ts';
import {
  appendBigint,
  appendBoolean,
  appendFinite,
  appendInteger,
  appendJson,
  type AppendValue,
  hexDigits,
  type TextFormat,
  uuidLength,
  writeUuid,
} from './text_format.ts';

const quote = 0x22;
const backslash = 0x5c;

/** The size of each byte of a text in JSON: 1; 2 for escapes like `\n`; 6 for `\u00XX`. */
const escapedSize = new Uint8Array(256).fill(1);
escapedSize.fill(6, 0, 0x20);
/** The letter after the backslash, for bytes with a short escape. */
const escapeLetter = new Uint8Array(256);
for (const [byte, letter] of [
  [0x08, 'b'],
  [0x09, 't'],
  [0x0a, 'n'],
  [0x0c, 'f'],
  [0x0d, 'r'],
  [quote, '"'],
  [backslash, '\\'],
] as const) {
  escapedSize[byte] = 2;
  escapeLetter[byte] = letter.charCodeAt(0);
}

/** Appends UTF-8 text as a JSON string, with the minimum of escapes. */
export const appendText: AppendValue = (target, block, start, end) => {
  let size = 0;
  for (let at = start; at < end; at += 1) size += escapedSize[block[at] ?? 0] ?? 1;
  reserve(target, size + 2);
  const { bytes } = target;
  bytes[target.length] = quote;
  target.length += 1;
  if (size === end - start) appendBytes(target, block, start, end);
  else appendEscaped(target, block, start, end);
  bytes[target.length] = quote;
  target.length += 1;
  return true;
};

function appendEscaped(target: GrowingBuffer, source: Buffer, start: number, end: number): void {
  const { bytes } = target;
  let to = target.length;
  for (let at = start; at < end; at += 1) {
    const byte = source[at] ?? 0;
    const size = escapedSize[byte] ?? 1;
    if (size === 1) {
      bytes[to] = byte;
    } else if (size === 2) {
      bytes[to] = backslash;
      bytes[to + 1] = escapeLetter[byte] ?? 0;
    } else {
      bytes.write('\\u00', to, 'latin1');
      bytes[to + 4] = hexDigits[byte >> 4] ?? 0;
      bytes[to + 5] = hexDigits[byte & 15] ?? 0;
    }
    to += size;
  }
  target.length = to;
}

/** Appends a binary uuid. */
const appendUuid: AppendValue = (target, block, start) => {
  reserve(target, uuidLength + 2);
  const { bytes, length } = target;
  bytes[length] = quote;
  writeUuid(target.view, length + 1, block, start);
  bytes[length + 1 + uuidLength] = quote;
  target.length = length + uuidLength + 2;
  return true;
};

/** Appends a binary timestamp. Returns false for infinities and years outside 0001 to 9999. */
const appendTimestamp: AppendValue = (target, block, start) => {
  reserve(target, timestampLength + 2);
  const { bytes, length } = target;
  if (!writeTimestamp(bytes, length + 1, block, start)) return false;
  bytes[length] = quote;
  bytes[length + 1 + timestampLength] = quote;
  target.length = length + timestampLength + 2;
  return true;
};

/** Appends a binary date. Returns false for infinities and years outside 0001 to 9999. */
const appendDate: AppendValue = (target, block, start) => {
  reserve(target, dayLength + 2);
  const { bytes, length } = target;
  if (!writeDate(bytes, length + 1, block.readInt32BE(start))) return false;
  bytes[length] = quote;
  bytes[length + 1 + dayLength] = quote;
  target.length = length + dayLength + 2;
  return true;
};

const nullText = Buffer.from('null');

/** Appends a number. Infinities and NaN become null, as in JSON.stringify. */
const appendDouble: AppendValue = (target, block, start) => {
  const value = block.readDoubleBE(start);
  if (Number.isFinite(value)) return appendFinite(target, value);
  appendBytes(target, nullText, 0, nullText.length);
  return true;
};

/** JSON lines: one object per row with its fields in column order, LF after each row. */
export const jsonLines: TextFormat = {
  header: () => Buffer.alloc(0),
  prefixes: (columns) =>
    columns.map(({ name }, index) => Buffer.from(`${index === 0 ? '{' : ','}${JSON.stringify(name)}:`)),
  nullText: Buffer.from('null'),
  rowEnd: Buffer.from('}\n'),
  append: {
    uuid: appendUuid,
    text: appendText,
    timestamp: appendTimestamp,
    date: appendDate,
    json: appendJson,
    bigint: appendBigint,
    integer: appendInteger,
    double: appendDouble,
    boolean: appendBoolean,
  },
};
