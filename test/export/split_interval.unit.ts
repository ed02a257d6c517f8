import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { FingerprintBucket } from '../../src/domain/fingerprint.ts';
import { planCuts, rangeSizeOf, splitInterval } from '../../src/export/count.ts';
import { allRows } from '../../src/source/row_selection.ts';
import type { RowRange } from '../../src/source/source.ts';
import { fingerprintOf } from '../domain/fingerprints.ts';

const range: RowRange = {
  model: 'events',
  team_id: 1,
  interval: { start: '2026-11-01T10:00:00.000Z', end: '2026-11-01T11:04:00.000Z' },
  selection: allRows,
};
const bucketsOf = (...rows: number[]): FingerprintBucket[] =>
  rows.map((count, index) => ({ index, rows: count, sum: '0' })).filter((bucket) => bucket.rows > 0);
const fingerprint = { ...fingerprintOf(0), width_ms: 60_000 };

describe('the size of ranges', () => {
  const settings = { EXPORTD_PARALLEL_RANGES: 4, EXPORTD_RANGE_ROWS: 10_000_000 };
  it.each([
    [499_999, null],
    [500_000, { rows: 275_000, splitsBuckets: false }],
    [1_000_000, { rows: 275_000, splitsBuckets: false }],
    [10_000_000, { rows: 2_750_000, splitsBuckets: false }],
    [10_000_001, { rows: 10_000_000, splitsBuckets: true }],
    [1_000_000_000, { rows: 15_625_000, splitsBuckets: true }],
  ])('of an interval of %i rows is %j', (rows, size) => {
    expect(rangeSizeOf(rows, settings)).toEqual(size);
  });

  it('is not limited on one connection, unless the interval is very large', () => {
    const one = { ...settings, EXPORTD_PARALLEL_RANGES: 1 };
    expect(rangeSizeOf(10_000_000, one)).toBeNull();
    expect(rangeSizeOf(20_000_000, one)).toEqual({ rows: 10_000_000, splitsBuckets: true });
  });

  it('splits evenly spread rows into the ranges that are read at the same time', () => {
    const rows = Array.from({ length: 64 }, (_, index) => 15_625 + ((index * 7_919) % 400) - 200);
    const total = rows.reduce((sum, count) => sum + count, 0);
    const size = rangeSizeOf(total, settings);
    expect(size && planCuts({ buckets: bucketsOf(...rows) }, size)).toHaveLength(3);
  });
});

describe('the cuts of an interval', () => {
  it('make ranges of about the requested size, and cut inside a bucket only if it has more rows than a range', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.nat({ max: 150 }), fc.integer({ min: 100, max: 1_000 })), { maxLength: 64 }),
        fc.integer({ min: 10, max: 300 }),
        (rows, every) => {
          const cuts = planCuts({ buckets: bucketsOf(...rows) }, { rows: every, splitsBuckets: true });
          const ranges: number[] = [0];
          const inner: { rows: number; rowsInRange: number | undefined }[] = [];
          for (const [index, count] of rows.entries()) {
            if (count === 0) continue;
            if (cuts.some((cut) => 'before' in cut && cut.before === index)) ranges.push(0);
            const inside = cuts.find((cut) => 'inside' in cut && cut.inside === index);
            if (inside && 'inside' in inside) {
              inner.push({ rows: count, rowsInRange: ranges.at(-1) });
              for (let left = count; left > 0; left -= inside.every) {
                if (left < count) ranges.push(0);
                ranges.push((ranges.pop() ?? 0) + Math.min(left, inside.every));
              }
            } else ranges.push((ranges.pop() ?? 0) + count);
          }
          expect(inner.filter(({ rows: count, rowsInRange }) => count <= every || rowsInRange !== 0)).toEqual(
            [],
          );
          const total = rows.reduce((sum, count) => sum + count, 0);
          expect(ranges.reduce((sum, count) => sum + count, 0)).toBe(total);
          for (const count of ranges) expect(count).toBeLessThanOrEqual(1.5 * every);
          expect(ranges.length).toBeLessThanOrEqual(1 + (2 * total) / every);
        },
      ),
    );
  });

  it('are found without reading rows, except in a bucket with more rows than a range', async () => {
    const read: unknown[] = [];
    const inner = { inserted_at: '2026-11-01T10:03:00.000000Z', id: 'inside' };
    const source = {
      splitKeys: ({ interval }: RowRange, every: number) => {
        read.push([interval, every]);
        return Promise.resolve([inner]);
      },
    };
    let splitsBuckets = true;
    const split = (...rows: number[]) =>
      splitInterval(
        source,
        range,
        { ...fingerprint, buckets: bucketsOf(...rows) },
        { rows: 100, splitsBuckets },
        new AbortController().signal,
      );
    const firstOf = (minute: number) => ({
      inserted_at: `2026-11-01T10:0${minute}:00.000000Z`,
      id: '00000000-0000-0000-0000-000000000000',
    });
    expect(await split(50, 50, 0, 60, 40)).toEqual([firstOf(3)]);
    expect(read).toEqual([]);
    expect(await split(50, 50, 0, 190, 60)).toEqual([firstOf(3), inner, firstOf(4)]);
    expect(read).toEqual([[{ start: '2026-11-01T10:03:00.000Z', end: '2026-11-01T10:04:00.000Z' }, 95]]);
    splitsBuckets = false;
    expect(await split(50, 50, 0, 190, 60)).toEqual([firstOf(3), firstOf(4)]);
    expect(read).toHaveLength(1);
  });
});
