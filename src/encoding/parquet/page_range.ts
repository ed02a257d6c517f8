import type { FileColumnType } from './file_columns.ts';

/**
 * How many bytes of a text are compared and stored: no more than the writer of the footer keeps. A
 * longer value is cut, which keeps it a bound.
 */
const maxBoundBytes = 16;

/**
 * The minimum and maximum of the values of a page so far. An int64 is stored as two halves; a string of bytes by its
 * offsets in the memory that has it.
 */
export interface PageRange {
  /** Whether there was a value. NaN is none. */
  filled: boolean;
  /** Integers of 32 bits, doubles and booleans; the high half of an int64; the start of a string. */
  min: number;
  max: number;
  /** The low half of an int64; the end of a string. */
  minEnd: number;
  maxEnd: number;
  /** The first four bytes of both, which decide about most strings. Those of a shorter one decide about none. */
  minWord: number;
  maxWord: number;
}

/** Starts a range without values. */
export const createPageRange = (): PageRange => ({
  filled: false,
  min: 0,
  max: 0,
  minEnd: 0,
  maxEnd: 0,
  minWord: 0,
  maxWord: 0,
});

/** Minimum and maximum as the bytes that PLAIN has without the length, in base64, because ranges are journaled. */
export type ValueRange = {
  readonly min: string;
  readonly max: string;
  /** Whether a bound was cut, so that no value equals it. */
  readonly cut?: true;
};

/**
 * Compares the first bytes `[start, end)` of two strings as unsigned numbers, four at a time. Strings that agree in more
 * bytes than are stored are equal.
 */
function compareBytes(view: DataView, one: number, oneEnd: number, other: number, otherEnd: number): number {
  const [oneLength, otherLength] = [oneEnd - one, otherEnd - other];
  const length = Math.min(oneLength, otherLength, maxBoundBytes + 1);
  let at = 0;
  for (; at + 4 <= length; at += 4) {
    const difference = view.getUint32(one + at) - view.getUint32(other + at);
    if (difference !== 0) return difference;
  }
  for (; at < length; at += 1) {
    const difference = view.getUint8(one + at) - view.getUint8(other + at);
    if (difference !== 0) return difference;
  }
  return length > maxBoundBytes ? 0 : oneLength - otherLength;
}

/** Words for bounds that every string is compared with. */
const undecided = { min: 0xffff_ffff, max: 0 };

/** Adds the string `[start, end)` to a range. */
export function addBytes(range: PageRange, view: DataView, start: number, end: number): void {
  const isShort = end - start < 4;
  const word = isShort ? 0 : view.getUint32(start);
  if (!range.filled) {
    range.filled = true;
    range.min = range.max = start;
    range.minEnd = range.maxEnd = end;
    range.minWord = isShort ? undecided.min : word;
    range.maxWord = isShort ? undecided.max : word;
    return;
  }
  if (!isShort && word > range.minWord && word < range.maxWord) return;
  if ((isShort || word <= range.minWord) && compareBytes(view, start, end, range.min, range.minEnd) < 0) {
    range.min = start;
    range.minEnd = end;
    range.minWord = isShort ? undecided.min : word;
  }
  if ((isShort || word >= range.maxWord) && compareBytes(view, start, end, range.max, range.maxEnd) > 0) {
    range.max = start;
    range.maxEnd = end;
    range.maxWord = isShort ? undecided.max : word;
  }
}

/**
 * The range as bytes.
 * @param memory what has the strings
 * @returns undefined without values, and if the maximum has only bytes that cannot be increased
 */
export function valueRangeOf(type: FileColumnType, range: PageRange, memory: Buffer): ValueRange | undefined {
  if (!range.filled) return undefined;
  switch (type) {
    case 'text':
    case 'json':
      return stringRange(memory.subarray(range.min, range.minEnd), memory.subarray(range.max, range.maxEnd));
    case 'timestamp':
    case 'bigint':
      return rangeOf(longBytes(range.min, range.minEnd), longBytes(range.max, range.maxEnd));
    case 'integer':
    case 'date':
      return rangeOf(integerBytes(range.min), integerBytes(range.max));
    case 'double':
      // The sign of zero is unknown to readers.
      return rangeOf(
        doubleBytes(range.min === 0 ? -0 : range.min),
        doubleBytes(range.max === 0 ? 0 : range.max),
      );
    case 'boolean':
      return rangeOf(Buffer.from([range.min]), Buffer.from([range.max]));
  }
}

const rangeOf = (min: Buffer, max: Buffer): ValueRange => ({
  min: min.toString('base64'),
  max: max.toString('base64'),
});

function stringRange(min: Buffer, max: Buffer): ValueRange | undefined {
  const highest = upperBound(max);
  if (highest === undefined) return undefined;
  const cut = min.length > maxBoundBytes || max.length > maxBoundBytes;
  return { ...rangeOf(min.subarray(0, endOfCharacters(min)), highest), ...(cut && { cut }) };
}

/** The end of the whole characters among the first bytes of a text. */
function endOfCharacters(text: Buffer): number {
  if (text.length <= maxBoundBytes) return text.length;
  let end = maxBoundBytes;
  while (end > 0 && ((text[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return end;
}

/** A value up to the maximum length that is at least as large; the last ASCII character of a cut one is increased. */
function upperBound(value: Buffer): Buffer | undefined {
  if (value.length <= maxBoundBytes) return value;
  for (let at = maxBoundBytes - 1; at >= 0; at -= 1) {
    const byte = value[at] ?? 0;
    if (byte < 0x7f) return Buffer.concat([value.subarray(0, at), Buffer.from([byte + 1])]);
  }
  return undefined;
}

function longBytes(high: number, low: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt32LE(low, 0);
  bytes.writeInt32LE(high, 4);
  return bytes;
}

function integerBytes(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(value);
  return bytes;
}

function doubleBytes(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return bytes;
}

/** The range of all values of several pages; undefined without values, or if a page with values has none. */
export function joinRanges(
  type: FileColumnType,
  pages: readonly { readonly hasValues: boolean; readonly range?: ValueRange | undefined }[],
): ValueRange | undefined {
  let joint: ValueRange | undefined;
  for (const { hasValues, range } of pages) {
    if (!range) {
      if (hasValues && type !== 'double') return undefined;
      continue;
    }
    joint = joint ? widened(type, joint, range) : range;
  }
  return joint;
}

function widened(type: FileColumnType, one: ValueRange, other: ValueRange): ValueRange {
  const min = compareBounds(type, one.min, other.min) <= 0 ? one.min : other.min;
  const max = compareBounds(type, one.max, other.max) >= 0 ? one.max : other.max;
  return { min, max, ...((one.cut ?? other.cut) && { cut: true }) };
}

/** Compares two bounds in the order of the column's type. */
export function compareBounds(type: FileColumnType, one: string, other: string): number {
  const [first, second] = [Buffer.from(one, 'base64'), Buffer.from(other, 'base64')];
  switch (type) {
    case 'text':
    case 'json':
    case 'boolean':
      return Buffer.compare(first, second);
    case 'timestamp':
    case 'bigint': {
      const [firstLong, secondLong] = [first.readBigInt64LE(), second.readBigInt64LE()];
      return firstLong < secondLong ? -1 : firstLong > secondLong ? 1 : 0;
    }
    case 'integer':
    case 'date':
      return first.readInt32LE() - second.readInt32LE();
    case 'double': {
      const [firstDouble, secondDouble] = [first.readDoubleLE(), second.readDoubleLE()];
      return firstDouble < secondDouble ? -1 : firstDouble > secondDouble ? 1 : 0;
    }
  }
}
