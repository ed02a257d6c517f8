import { appendBytes, reserve, type GrowingBuffer } from './growing_buffer.ts';
import type { AppendValue } from './text_format.ts';

/** Values whose text is the same in every format: ASCII that never needs to be escaped, and JSON. */

export const hexDigits = Buffer.from('0123456789abcdef');
const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const hyphen = 0x2d;
const jsonbVersion = 1;

/** Appends text that is ASCII: numbers, `true`, `false`. */
function appendAscii(target: GrowingBuffer, text: string): true {
  reserve(target, text.length);
  target.length += target.bytes.write(text, target.length, 'latin1');
  return true;
}

/** Appends an int8 of binary COPY in decimal digits. */
export const appendBigint: AppendValue = (target, block, start) =>
  appendAscii(target, block.readBigInt64BE(start).toString());

/** Appends an int4 of binary COPY in decimal digits. */
export const appendInteger: AppendValue = (target, block, start) =>
  appendAscii(target, block.readInt32BE(start).toString());

/** As JavaScript writes it, which every reader of numbers reads back as the same one. Infinities have no such text. */
export const appendFinite = (target: GrowingBuffer, value: number): true =>
  appendAscii(target, Object.is(value, -0) ? '-0' : String(value));

/** Appends a bool of binary COPY as true or false. */
export const appendBoolean: AppendValue = (target, block, start) =>
  appendAscii(target, block[start] === 1 ? 'true' : 'false');

/** Bytes of a uuid's text. */
export const uuidLength = 36;

/** The two hexadecimal digits of each byte, as one number. */
const hexPairs = Uint16Array.from({ length: 256 }, (_, byte) =>
  Buffer.from(byte.toString(16).padStart(2, '0')).readUInt16LE(),
);
/** Where each byte of a uuid stands in its text. */
const uuidPlaces = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

/** Writes the text of a binary uuid at `at`. */
export function writeUuid(target: DataView, at: number, source: Buffer, start: number): void {
  for (let byte = 0; byte < 16; byte += 1)
    target.setUint16(at + (uuidPlaces[byte] ?? 0), hexPairs[source[start + byte] ?? 0] ?? 0, true);
  target.setUint8(at + 8, hyphen);
  target.setUint8(at + 13, hyphen);
  target.setUint8(at + 18, hyphen);
  target.setUint8(at + 23, hyphen);
}

/** Where the text of a JSON value begins: jsonb in binary form begins with its version, which begins no JSON text. */
export const jsonTextAt = (block: Buffer, start: number): number =>
  block[start] === jsonbVersion ? start + 1 : start;

/** Whether a byte is LF or CR. */
export const isLineBreak = (byte: number): boolean => byte === lineFeed || byte === carriageReturn;

/**
 * Appends JSON as PostgreSQL gives it: numbers keep every digit, members their order and duplicates. Line breaks of a
 * `json` column are left out: PostgreSQL allows none inside a string, so these only lay the text out.
 */
export const appendJson: AppendValue = (target, block, start, end) => {
  let from = jsonTextAt(block, start);
  // jsonb is laid out without line breaks.
  if (from === start)
    for (let at = start; at < end; at += 1)
      if (isLineBreak(block[at] ?? 0)) {
        appendBytes(target, block, from, at);
        from = at + 1;
      }
  appendBytes(target, block, from, end);
  return true;
};
