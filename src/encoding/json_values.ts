import { dayLength, timestampLength, writeDay, writeTimestamp } from '../source/timestamp.ts';
import { appendBytes, reserve, type GrowingBuffer } from './growing_buffer.ts';
import { appendFinite, hexDigits, uuidLength, writeUuid } from './text_values.ts';
import type { AppendValue } from './text_format.ts';

// The Parquet encoder knows it from here.

const quote = 0x22;
const backslash = 0x5c;

/** How many bytes each byte of a text takes in JSON: 1, 2 for `\n` and its like, 6 for `\u00XX`. */
const escapedSize = new Uint8Array(256).fill(1);
escapedSize.fill(6, 0, 0x20);
/** The letter after the backslash, for the bytes that have one. */
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

/** Appends UTF-8 text as a JSON string. Only what JSON demands is escaped. */
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
export const appendUuid: AppendValue = (target, block, start) => {
  reserve(target, uuidLength + 2);
  const { bytes, length } = target;
  bytes[length] = quote;
  writeUuid(target.view, length + 1, block, start);
  bytes[length + 1 + uuidLength] = quote;
  target.length = length + uuidLength + 2;
  return true;
};

/** Appends a binary timestamp; there is no text for the infinities and the years outside 0001 to 9999. */
export const appendTimestamp: AppendValue = (target, block, start) => {
  reserve(target, timestampLength + 2);
  const { bytes, length } = target;
  if (!writeTimestamp(bytes, length + 1, block, start)) return false;
  bytes[length] = quote;
  bytes[length + 1 + timestampLength] = quote;
  target.length = length + timestampLength + 2;
  return true;
};

/** Appends a binary date; there is no text for the infinities and the years outside 0001 to 9999. */
export const appendDate: AppendValue = (target, block, start) => {
  reserve(target, dayLength + 2);
  const { bytes, length } = target;
  if (!writeDay(bytes, length + 1, block.readInt32BE(start))) return false;
  bytes[length] = quote;
  bytes[length + 1 + dayLength] = quote;
  target.length = length + dayLength + 2;
  return true;
};

const nullText = Buffer.from('null');

/** JSON has no infinities and nothing for what is no number: null stands for them, as JSON.stringify has it. */
export const appendDouble: AppendValue = (target, block, start) => {
  const value = block.readDoubleBE(start);
  if (Number.isFinite(value)) return appendFinite(target, value);
  appendBytes(target, nullText, 0, nullText.length);
  return true;
};
