import { timestampLength, writeTimestamp } from '../source/timestamp.ts';
import { reserve, type GrowingBuffer } from './growing_buffer.ts';

const quote = 0x22;
const backslash = 0x5c;
const hexDigits = Buffer.from('0123456789abcdef');

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

/** Below this many bytes a loop is faster than a call into Node. */
const shortCopy = 48;

/** Appends bytes as they are. */
export function appendBytes(target: GrowingBuffer, source: Buffer, start: number, end: number): void {
  reserve(target, end - start);
  const { bytes } = target;
  if (end - start < shortCopy)
    for (let from = start, to = target.length; from < end; from += 1, to += 1) bytes[to] = source[from] ?? 0;
  else source.copy(bytes, target.length, start, end);
  target.length += end - start;
}

/** Appends UTF-8 text as a JSON string. Only what JSON demands is escaped. */
export function appendText(target: GrowingBuffer, source: Buffer, start: number, end: number): void {
  let size = 0;
  for (let at = start; at < end; at += 1) size += escapedSize[source[at] ?? 0] ?? 1;
  reserve(target, size + 2);
  const { bytes } = target;
  bytes[target.length] = quote;
  target.length += 1;
  if (size === end - start) appendBytes(target, source, start, end);
  else appendEscaped(target, source, start, end);
  target.bytes[target.length] = quote;
  target.length += 1;
}

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

/**
 * Appends JSON as PostgreSQL gives it: numbers keep every digit, members their order and duplicates. Line breaks of a
 * `json` column are left out: PostgreSQL allows none inside a string, so these only lay the text out.
 */
export function appendJson(target: GrowingBuffer, source: Buffer, start: number, end: number): void {
  // jsonb in binary form begins with its version, 1, which cannot begin a JSON text.
  let from = source[start] === 1 ? start + 1 : start;
  for (
    let lineEnd = lineBreakFrom(source, from, end);
    lineEnd < end;
    lineEnd = lineBreakFrom(source, from, end)
  ) {
    appendBytes(target, source, from, lineEnd);
    from = lineEnd + 1;
  }
  appendBytes(target, source, from, end);
}

function lineBreakFrom(source: Buffer, start: number, end: number): number {
  for (let at = start; at < end; at += 1) {
    const byte = source[at];
    if (byte === 0x0a || byte === 0x0d) return at;
  }
  return end;
}

/** Appends a binary uuid. */
export function appendUuid(target: GrowingBuffer, source: Buffer, start: number): void {
  reserve(target, 38);
  const { bytes } = target;
  let to = target.length;
  bytes[to++] = quote;
  for (let byte = 0; byte < 16; byte += 1) {
    const value = source[start + byte] ?? 0;
    bytes[to++] = hexDigits[value >> 4] ?? 0;
    bytes[to++] = hexDigits[value & 15] ?? 0;
    if (byte === 3 || byte === 5 || byte === 7 || byte === 9) bytes[to++] = 0x2d;
  }
  bytes[to++] = quote;
  target.length = to;
}

/** Appends a binary timestamp; false, with nothing appended, when there is no text for it. */
export function appendTimestamp(target: GrowingBuffer, source: Buffer, start: number): boolean {
  reserve(target, timestampLength + 2);
  const { bytes, length } = target;
  if (!writeTimestamp(bytes, length + 1, source, start)) return false;
  bytes[length] = quote;
  bytes[length + 1 + timestampLength] = quote;
  target.length = length + timestampLength + 2;
  return true;
}

/** Appends text that is ASCII and needs no escape: numbers, `true`, `null`. */
export function appendAscii(target: GrowingBuffer, text: string): void {
  reserve(target, text.length);
  target.length += target.bytes.write(text, target.length, 'latin1');
}
