import { appendBytes, reserve, type GrowingBuffer } from './growing_buffer.ts';
import type { AppendValue } from './text_format.ts';

export const hexDigits = Buffer.from('0123456789abcdef');
const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const hyphen = 0x2d;
const jsonbVersion = 1;

/** Appends ASCII text: numbers, `true`, `false`. */
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

/**
 * Appends a number as JavaScript formats it, which every reader reads back as the same number. Infinities are not
 * formatted this way.
 */
export const appendFinite = (target: GrowingBuffer, value: number): true =>
  appendAscii(target, Object.is(value, -0) ? '-0' : String(value));

/** Appends a bool of binary COPY as true or false. */
export const appendBoolean: AppendValue = (target, block, start) =>
  appendAscii(target, block[start] === 1 ? 'true' : 'false');

/** Length of a formatted uuid in bytes. */
export const uuidLength = 36;

/** The two hexadecimal digits of each byte, as a 16-bit number. */
const hexPairs = Uint16Array.from({ length: 256 }, (_, byte) =>
  Buffer.from(byte.toString(16).padStart(2, '0')).readUInt16LE(),
);
/** The offset of each byte of a uuid in its text. */
const uuidOffsets = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

/** Formats a binary uuid at `at`. */
export function writeUuid(target: DataView, at: number, source: Buffer, start: number): void {
  for (let byte = 0; byte < 16; byte += 1)
    target.setUint16(at + (uuidOffsets[byte] ?? 0), hexPairs[source[start + byte] ?? 0] ?? 0, true);
  target.setUint8(at + 8, hyphen);
  target.setUint8(at + 13, hyphen);
  target.setUint8(at + 18, hyphen);
  target.setUint8(at + 23, hyphen);
}

/** The start of the text of a JSON value. Binary jsonb starts with a version byte, with which no JSON text starts. */
export const jsonTextStart = (block: Buffer, start: number): number =>
  block[start] === jsonbVersion ? start + 1 : start;

/** Whether a byte is LF or CR. */
export const isLineBreak = (byte: number): boolean => byte === lineFeed || byte === carriageReturn;

/**
 * Appends JSON as PostgreSQL returns it: numbers keep all digits, fields keep their order and duplicates. Line breaks
 * of a `json` column are removed: strings cannot contain them, so they only separate tokens.
 */
export const appendJson: AppendValue = (target, block, start, end) => {
  let from = jsonTextStart(block, start);
  // PostgreSQL prints jsonb without line breaks.
  if (from === start)
    for (let at = start; at < end; at += 1)
      if (isLineBreak(block[at] ?? 0)) {
        appendBytes(target, block, from, at);
        from = at + 1;
      }
  appendBytes(target, block, from, end);
  return true;
};
