import type { SortKey } from '../domain/exported_files.ts';
import type { ModelQuery } from './model_query.ts';
import type { ExportedColumn } from './row_selection.ts';

export const microsecondsPerDay = 86_400_000_000;
/** Days from 0000-03-01, where the calendar arithmetic starts, to 2000-01-01, PostgreSQL's epoch. */
const daysToEpoch = 730_425;
const daysPerEra = 146_097;
/** The first day that files have, since 2000-01-01: 0001-01-01. */
export const firstDay = -730_119;
/** The last: 9999-12-31. */
export const lastDay = 2_921_939;
const digit = 48;

/** Length of a formatted timestamp in bytes. */
export const timestampLength = 27;
/** Length of a formatted date in bytes. */
export const dayLength = 10;

/** The last formatted day, cached: rows arrive in the order of time, so most share it. */
let writtenDay = Number.NaN;
/** The last formatted timestamp. The times of a row are often equal, and most rows share the second of the one before. */
const written = Buffer.from('0001-01-01T00:00:00.000000Z');
let writtenHigh = Number.NaN;
let writtenLow = Number.NaN;
let writtenSeconds = Number.NaN;
const writtenDate = written.subarray(0, dayLength);

/**
 * Formats the binary timestamp (microseconds since 2000-01-01 UTC, int64) at `from` in `source` as
 * `2026-11-01T10:00:00.123456Z`. Exact: a Date would lose the microseconds.
 * @returns false for infinities and years outside 0001 to 9999; the target is then undefined
 */
export function writeTimestamp(target: Uint8Array, at: number, source: Buffer, from: number): boolean {
  const high = source.readInt32BE(from);
  const low = source.readUInt32BE(from + 4);
  if (high === writtenHigh && low === writtenLow) {
    target.set(written, at);
    return true;
  }
  let day: number;
  let rest: number;
  if (high >= -0x20_0000 && high < 0x20_0000) {
    const microseconds = high * 0x1_0000_0000 + low;
    day = Math.floor(microseconds / microsecondsPerDay);
    rest = microseconds - day * microsecondsPerDay;
  } else {
    // More than 285 years from 2000 a number cannot represent every microsecond.
    const microseconds = source.readBigInt64BE(from);
    const exactRest = microseconds % BigInt(microsecondsPerDay);
    rest = Number(exactRest < 0n ? exactRest + BigInt(microsecondsPerDay) : exactRest);
    day = Number((microseconds - BigInt(rest)) / BigInt(microsecondsPerDay));
  }
  if (day !== writtenDay) {
    if (day < firstDay || day > lastDay) return false;
    writeCalendarDate(day);
    writtenDay = day;
  }
  const seconds = Math.floor(rest / 1_000_000);
  if (seconds !== writtenSeconds) {
    twoDigits(written, 11, Math.floor(seconds / 3_600));
    twoDigits(written, 14, Math.floor(seconds / 60) % 60);
    twoDigits(written, 17, seconds % 60);
    writtenSeconds = seconds;
  }
  const fraction = rest - seconds * 1_000_000;
  twoDigits(written, 20, Math.floor(fraction / 10_000));
  twoDigits(written, 22, Math.floor(fraction / 100) % 100);
  twoDigits(written, 24, fraction % 100);
  writtenHigh = high;
  writtenLow = low;
  target.set(written, at);
  return true;
}

/**
 * Formats a binary date (days since 2000-01-01) as `2026-11-01`.
 * @returns false for infinities and years outside 0001 to 9999; the target is then undefined
 */
export function writeDate(target: Uint8Array, at: number, day: number): boolean {
  if (day < firstDay || day > lastDay) return false;
  if (day !== writtenDay) {
    writeCalendarDate(day);
    writtenDay = day;
    // The date of the last timestamp is overwritten.
    writtenHigh = Number.NaN;
  }
  target.set(writtenDate, at);
  return true;
}

/** Formats a binary timestamp as a string; undefined where `writeTimestamp` returns false. */
export function formatTimestamp(source: Buffer, from: number): string | undefined {
  const text = Buffer.allocUnsafe(timestampLength);
  return writeTimestamp(text, 0, source, from) ? text.toString('latin1') : undefined;
}

function twoDigits(target: Uint8Array, at: number, value: number): void {
  const tens = Math.floor(value / 10);
  target[at] = digit + tens;
  target[at + 1] = digit + value - tens * 10;
}

/** Proleptic Gregorian calendar, with years that start in March so that the leap day is the last day of a year. */
function writeCalendarDate(day: number): void {
  const shifted = day + daysToEpoch;
  const era = Math.floor(shifted / daysPerEra);
  const dayOfEra = shifted - era * daysPerEra;
  const yearOfEra = Math.floor(
    (dayOfEra -
      Math.floor(dayOfEra / 1_460) +
      Math.floor(dayOfEra / 36_524) -
      Math.floor(dayOfEra / 146_096)) /
      365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const monthFromMarch = Math.floor((5 * dayOfYear + 2) / 153);
  const month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  twoDigits(writtenDate, 0, Math.floor(year / 100));
  twoDigits(writtenDate, 2, year % 100);
  writtenDate[4] = 45;
  twoDigits(writtenDate, 5, month);
  writtenDate[7] = 45;
  twoDigits(writtenDate, 8, dayOfYear - Math.floor((153 * monthFromMarch + 2) / 5) + 1);
}

/** A 64-bit hash as two unsigned halves. Numbers instead of a bigint, which would take most of the time. */
export interface Hash64 {
  high: number;
  low: number;
}

/**
 * PostgreSQL's `hash_bytes_extended` with seed 0 over `bytes[start..end)`: the hash of `uuid_hash_extended(uuid, 0)` and,
 * over UTF-8, of `hashtextextended(text collate "C", 0)`. It is Jenkins' lookup3 as a little-endian server computes it.
 * @param hash receives the result, so that nothing is allocated
 */
export function hashBytes(bytes: Uint8Array, start: number, end: number, hash: Hash64): void {
  let a = (0x9e37_79b9 + 3_923_095 + end - start) | 0;
  let b = a;
  let c = a;
  let at = start;
  for (; end - at >= 12; at += 12) {
    a = (a + wordAt(bytes, at, end)) | 0;
    b = (b + wordAt(bytes, at + 4, end)) | 0;
    c = (c + wordAt(bytes, at + 8, end)) | 0;
    a = (a - c) ^ ((c << 4) | (c >>> 28));
    c = (c + b) | 0;
    b = (b - a) ^ ((a << 6) | (a >>> 26));
    a = (a + c) | 0;
    c = (c - b) ^ ((b << 8) | (b >>> 24));
    b = (b + a) | 0;
    a = (a - c) ^ ((c << 16) | (c >>> 16));
    c = (c + b) | 0;
    b = (b - a) ^ ((a << 19) | (a >>> 13));
    a = (a + c) | 0;
    c = (c - b) ^ ((b << 4) | (b >>> 28));
    b = (b + a) | 0;
  }
  a = (a + wordAt(bytes, at, end)) | 0;
  b = (b + wordAt(bytes, at + 4, end)) | 0;
  // The lowest byte of the last word is that of the length.
  c = (c + (wordAt(bytes, at + 8, end) << 8)) | 0;
  c = ((c ^ b) - ((b << 14) | (b >>> 18))) | 0;
  a = ((a ^ c) - ((c << 11) | (c >>> 21))) | 0;
  b = ((b ^ a) - ((a << 25) | (a >>> 7))) | 0;
  c = ((c ^ b) - ((b << 16) | (b >>> 16))) | 0;
  a = ((a ^ c) - ((c << 4) | (c >>> 28))) | 0;
  b = ((b ^ a) - ((a << 14) | (a >>> 18))) | 0;
  c = ((c ^ b) - ((b << 24) | (b >>> 8))) | 0;
  hash.high = b >>> 0;
  hash.low = c >>> 0;
}

/** The four bytes at `at` as a little-endian word; bytes from `end` on are 0. */
const wordAt = (bytes: Uint8Array, at: number, end: number): number =>
  at + 4 <= end
    ? (bytes[at] ?? 0) |
      ((bytes[at + 1] ?? 0) << 8) |
      ((bytes[at + 2] ?? 0) << 16) |
      ((bytes[at + 3] ?? 0) << 24)
    : (at < end ? (bytes[at] ?? 0) : 0) |
      (at + 1 < end ? (bytes[at + 1] ?? 0) << 8 : 0) |
      (at + 2 < end ? (bytes[at + 2] ?? 0) << 16 : 0);

/** The byte range of a field in a block. */
interface Field {
  readonly start: number;
  readonly end: number;
}

/** A row has no usable sort key: a key column is null, or its time cannot be formatted. */
export class MissingSortKey extends Error {
  override readonly name = 'MissingSortKey';
}

/** The bytes of field `field` (from 0) of the binary COPY tuple at `tupleAt`. For null, `end` is less than `start`. */
export function fieldOf(block: Buffer, tupleAt: number, field: number): Field {
  let at = tupleAt + 2;
  for (let passed = 0; passed < field; passed += 1) at += 4 + Math.max(0, block.readInt32BE(at));
  const start = at + 4;
  return { start, end: start + block.readInt32BE(at) };
}

/** The end of the binary COPY tuple at an offset. */
export function endOfTuple(block: Buffer, start: number): number {
  let at = start + 2;
  for (let left = block.readInt16BE(start); left > 0; left -= 1) at += 4 + Math.max(0, block.readInt32BE(at));
  return at;
}

/** Returns the sort key of the tuple at `tupleAt`. @throws MissingSortKey */
export function sortKeyAt(
  block: Buffer,
  tupleAt: number,
  { columns, key }: Pick<ModelQuery, 'columns' | 'key'>,
): SortKey {
  const time = fieldOf(block, tupleAt, key.inserted_at);
  const id = fieldOf(block, tupleAt, key.id);
  const idName = columns[key.id]?.name ?? 'id';
  if (id.end < id.start) throw new MissingSortKey(`A row of the source has no ${idName}.`);
  const idText =
    columns[key.id]?.type === 'uuid' ? formatUuid(block, id.start) : block.toString('utf8', id.start, id.end);
  const inserted_at = time.end < time.start ? undefined : formatTimestamp(block, time.start);
  if (inserted_at === undefined)
    throw new MissingSortKey(`The row with ${idName} ${idText} has no valid insertion time.`);
  return { inserted_at, id: idText };
}

/** Whether two tuples in separate buffers have the same key. */
export function sameKey(
  left: Buffer,
  leftAt: number,
  right: Buffer,
  rightAt: number,
  { key }: Pick<ModelQuery, 'key'>,
): boolean {
  return [key.inserted_at, key.id].every((position) => {
    const one = fieldOf(left, leftAt, position);
    const other = fieldOf(right, rightAt, position);
    return (
      left.compare(
        right,
        other.start,
        Math.max(other.start, other.end),
        one.start,
        Math.max(one.start, one.end),
      ) === 0
    );
  });
}

/** Formats the binary uuid at `at`. */
export function formatUuid(source: Buffer, at: number): string {
  const text = source.toString('hex', at, at + 16);
  return `${text.slice(0, 8)}-${text.slice(8, 12)}-${text.slice(12, 16)}-${text.slice(16, 20)}-${text.slice(20)}`;
}

/** The columns that files contain. */
export const fileColumns = (columns: readonly ExportedColumn[]): readonly ExportedColumn[] =>
  columns.filter(({ hidden }) => hidden !== true);
