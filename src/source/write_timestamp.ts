/** The text of binary timestamps and dates, as files have them. */

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
