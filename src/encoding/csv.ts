import { dayLength, timestampLength, writeDate, writeTimestamp } from '../source/sort_key.ts';
import { appendBytes, createGrowingBuffer, type GrowingBuffer, reserve } from './memory.ts';
import {
  appendBigint,
  appendBoolean,
  appendFinite,
  appendInteger,
  type AppendValue,
  isLineBreak,
  jsonTextStart,
  type TextFormat,
  uuidLength,
  writeUuid,
} from './text_format.ts';

const quote = 0x22;
const space = 0x20;
const tab = 0x09;
/** Up to this size in bytes, reserving twice the size is cheaper than counting quotes. */
const smallValue = 64 * 1024;

/** 1 for bytes that require quotes. */
const needsQuotes = new Uint8Array(256);
for (const character of '",\r\n') needsQuotes[character.charCodeAt(0)] = 1;

/** Appends UTF-8 text, quoted if necessary. An empty string is quoted, because null is written as nothing. */
const appendText: AppendValue = (target, block, start, end) => {
  if (isPlain(block, start, end)) appendBytes(target, block, start, end);
  else appendQuoted(target, block, start, end, false);
  return true;
};

/** Appends JSON as text, without line breaks between tokens. */
const appendJson: AppendValue = (target, block, start, end) => {
  const from = jsonTextStart(block, start);
  if (isPlain(block, from, end)) appendBytes(target, block, from, end);
  else appendQuoted(target, block, from, end, from === start);
  return true;
};

/** Whether a text can be written without quotes. Some readers trim unquoted values. */
function isPlain(source: Buffer, start: number, end: number): boolean {
  if (start === end) return false;
  for (let at = start; at < end; at += 1) if (needsQuotes[source[at] ?? 0] === 1) return false;
  return !isBlank(source[start]) && !isBlank(source[end - 1]);
}

const isBlank = (byte: number | undefined): boolean => byte === space || byte === tab;

function appendQuoted(
  target: GrowingBuffer,
  source: Buffer,
  start: number,
  end: number,
  withoutLineBreaks: boolean,
): void {
  const size = end - start;
  reserve(target, 2 + size + (size < smallValue ? size : quotesIn(source, start, end)));
  const { bytes } = target;
  let to = target.length;
  bytes[to++] = quote;
  for (let at = start; at < end; at += 1) {
    const byte = source[at] ?? 0;
    if (withoutLineBreaks && isLineBreak(byte)) continue;
    if (byte === quote) bytes[to++] = quote;
    bytes[to++] = byte;
  }
  bytes[to++] = quote;
  target.length = to;
}

function quotesIn(source: Buffer, start: number, end: number): number {
  let quotes = 0;
  for (let at = start; at < end; at += 1) if (source[at] === quote) quotes += 1;
  return quotes;
}

/** Appends a binary uuid. */
const appendUuid: AppendValue = (target, block, start) => {
  reserve(target, uuidLength);
  writeUuid(target.view, target.length, block, start);
  target.length += uuidLength;
  return true;
};

/** Appends a binary timestamp. Returns false for infinities and years outside 0001 to 9999. */
const appendTimestamp: AppendValue = (target, block, start) => {
  reserve(target, timestampLength);
  if (!writeTimestamp(target.bytes, target.length, block, start)) return false;
  target.length += timestampLength;
  return true;
};

/** Appends a binary date. Returns false for infinities and years outside 0001 to 9999. */
const appendDate: AppendValue = (target, block, start) => {
  reserve(target, dayLength);
  if (!writeDate(target.bytes, target.length, block.readInt32BE(start))) return false;
  target.length += dayLength;
  return true;
};

/** Appends a number. `Infinity`, `-Infinity` and `NaN` are written as PostgreSQL prints them. */
const appendDouble: AppendValue = (target, block, start) => appendFinite(target, block.readDoubleBE(start));

const comma = Buffer.from(',');
const lineFeed = Buffer.from('\n');

/** CSV (RFC 4180) with a header line and LF after each row. Null is nothing, an empty string is `""`. */
export const csv: TextFormat = {
  header(columns) {
    const line = createGrowingBuffer(1_024);
    for (const [index, { name }] of columns.entries()) {
      const text = Buffer.from(name);
      if (index > 0) appendBytes(line, comma, 0, comma.length);
      appendText(line, text, 0, text.length);
    }
    appendBytes(line, lineFeed, 0, lineFeed.length);
    return line.bytes.subarray(0, line.length);
  },
  prefixes: (columns) => columns.map((_, index) => (index === 0 ? Buffer.alloc(0) : comma)),
  nullText: Buffer.alloc(0),
  rowEnd: lineFeed,
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
