import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { dayLength, formatTimestamp, writeDate } from '../../src/source/timestamp.ts';
import { int64 } from '../encoding/copy_block.ts';
import { randomCases } from '../setup/effort.ts';

const epoch = BigInt(Date.UTC(2000, 0, 1));
const fromMilliseconds = (milliseconds: number, microseconds = 0): Buffer =>
  int64((BigInt(milliseconds) - epoch) * 1000n + BigInt(microseconds));

describe('formatTimestamp', () => {
  it('agrees with the calendar of Date, to the microsecond, from year 1 to 9999', () => {
    const first = new Date('0001-01-01T00:00:00Z').getTime();
    const last = new Date('9999-12-31T23:59:59.999Z').getTime();
    fc.assert(
      fc.property(
        fc.integer({ min: first, max: last }),
        fc.nat({ max: 999 }),
        (milliseconds, microseconds) => {
          const date = new Date(milliseconds).toISOString().slice(0, -1);
          expect(formatTimestamp(fromMilliseconds(milliseconds, microseconds), 0)).toBe(
            `${date}${String(microseconds).padStart(3, '0')}Z`,
          );
        },
      ),
      { numRuns: randomCases(2_000) },
    );
  });

  it('formats the first and last microsecond with a four-digit year', () => {
    const first = fromMilliseconds(new Date('0001-01-01T00:00:00Z').getTime());
    const last = fromMilliseconds(new Date('9999-12-31T23:59:59.999Z').getTime(), 999);
    expect(formatTimestamp(first, 0)).toBe('0001-01-01T00:00:00.000000Z');
    expect(formatTimestamp(last, 0)).toBe('9999-12-31T23:59:59.999999Z');
    expect(formatTimestamp(int64(first.readBigInt64BE() - 1n), 0)).toBeUndefined();
    expect(formatTimestamp(int64(last.readBigInt64BE() + 1n), 0)).toBeUndefined();
  });

  it('does not depend on what was formatted before: equal and adjacent times, and dates', () => {
    const day = Buffer.alloc(dayLength);
    const time = (seconds: number, microseconds: number) =>
      formatTimestamp(fromMilliseconds(Date.UTC(2026, 10, 1, 10, 0, seconds), microseconds), 0);
    expect(time(5, 1)).toBe('2026-11-01T10:00:05.000001Z');
    expect(time(5, 1)).toBe('2026-11-01T10:00:05.000001Z');
    expect(time(5, 20)).toBe('2026-11-01T10:00:05.000020Z');
    expect(time(6, 20)).toBe('2026-11-01T10:00:06.000020Z');
    writeDate(day, 0, 0);
    expect(day.toString()).toBe('2000-01-01');
    expect(time(6, 20)).toBe('2026-11-01T10:00:06.000020Z');
    expect(formatTimestamp(int64(2n ** 63n - 1n), 0)).toBeUndefined();
    expect(time(6, 20)).toBe('2026-11-01T10:00:06.000020Z');
  });

  it('rejects infinities', () => {
    expect(formatTimestamp(int64(2n ** 63n - 1n), 0)).toBeUndefined();
    expect(formatTimestamp(int64(-(2n ** 63n)), 0)).toBeUndefined();
  });
});
