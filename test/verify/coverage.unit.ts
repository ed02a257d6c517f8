import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { coverageOf, overlaps } from '../../src/verify/coverage.ts';

const timeOf = (hour: number): string => new Date(Date.UTC(2026, 0, 1, hour)).toISOString();
const hoursOf = ({ start, end }: { start: string; end: string }): number[] => {
  const [from, to] = [start, end].map((time) => (Date.parse(time) - Date.UTC(2026, 0, 1)) / 3_600_000);
  return Array.from({ length: (to ?? 0) - (from ?? 0) }, (_, index) => (from ?? 0) + index);
};

const interval = fc
  .tuple(fc.integer({ min: 0, max: 30 }), fc.integer({ min: 1, max: 5 }))
  .map(([hour, length]) => ({ start: timeOf(hour), end: timeOf(hour + length) }));

describe('the time that intervals cover', () => {
  it('is the range without gaps; overlaps are returned for each pair', () => {
    fc.assert(
      fc.property(fc.array(interval, { minLength: 1, maxLength: 8 }), (intervals) => {
        const range = { start: timeOf(0), end: timeOf(40) };
        const { gaps, overlaps } = coverageOf(intervals, { from: range.start, to: range.end });
        const covered = new Set(intervals.flatMap(hoursOf));
        expect(gaps.flatMap(hoursOf)).toEqual(hoursOf(range).filter((hour) => !covered.has(hour)));
        const pairs = intervals.flatMap((one, index) =>
          intervals.slice(index + 1).map((other) => [one, other] as const),
        );
        const shared = pairs
          .map(([one, other]) => hoursOf(one).filter((hour) => hoursOf(other).includes(hour)))
          .filter((hours) => hours.length > 0);
        const sorted = (lists: number[][]) => lists.map((hours) => hours.join()).sort();
        expect(sorted(overlaps.map((overlap) => hoursOf(overlap.shared)))).toEqual(sorted(shared));
      }),
    );
  });

  it('without a range is between the first start and the last end', () => {
    const open = { from: null, to: null };
    const [one, other] = [
      { start: timeOf(1), end: timeOf(2) },
      { start: timeOf(4), end: timeOf(5) },
    ];
    expect(coverageOf([], open)).toEqual({ gaps: [], overlaps: [] });
    expect(coverageOf([other, one], open).gaps).toEqual([{ start: timeOf(2), end: timeOf(4) }]);
    expect(coverageOf([], { from: timeOf(1), to: timeOf(2) }).gaps).toEqual([one]);
  });

  it('touches an overlapping range, not an adjacent one', () => {
    const hour = { start: timeOf(1), end: timeOf(2) };
    expect(overlaps(hour, { from: timeOf(2), to: null })).toBe(false);
    expect(overlaps(hour, { from: null, to: timeOf(1) })).toBe(false);
    expect(overlaps(hour, { from: timeOf(0), to: timeOf(9) })).toBe(true);
    expect(overlaps(hour, { from: null, to: null })).toBe(true);
  });
});
