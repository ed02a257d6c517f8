import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { overlappingPairs, overlaps } from '../../src/verify/gaps.ts';

const timeOf = (hour: number): string => new Date(Date.UTC(2026, 0, 1, hour)).toISOString();
const hoursOf = ({ start, end }: { start: string; end: string }): number[] => {
  const [from, to] = [start, end].map((time) => (Date.parse(time) - Date.UTC(2026, 0, 1)) / 3_600_000);
  return Array.from({ length: (to ?? 0) - (from ?? 0) }, (_, index) => (from ?? 0) + index);
};

const interval = fc
  .tuple(fc.integer({ min: 0, max: 30 }), fc.integer({ min: 1, max: 5 }))
  .map(([hour, length]) => ({ start: timeOf(hour), end: timeOf(hour + length) }));

describe('intervals', () => {
  it('that overlap are returned in pairs, with the time that they share', () => {
    fc.assert(
      fc.property(fc.array(interval, { minLength: 1, maxLength: 8 }), (intervals) => {
        const pairs = intervals.flatMap((one, index) =>
          intervals.slice(index + 1).map((other) => [one, other] as const),
        );
        const shared = pairs
          .map(([one, other]) => hoursOf(one).filter((hour) => hoursOf(other).includes(hour)))
          .filter((hours) => hours.length > 0);
        const sorted = (lists: number[][]) => lists.map((hours) => hours.join()).sort();
        expect(sorted(overlappingPairs(intervals).map((pair) => hoursOf(pair.shared)))).toEqual(
          sorted(shared),
        );
      }),
    );
  });

  it('overlap a range that they share time with, not an adjacent one', () => {
    const hour = { start: timeOf(1), end: timeOf(2) };
    expect(overlaps(hour, { from: timeOf(2), to: null })).toBe(false);
    expect(overlaps(hour, { from: null, to: timeOf(1) })).toBe(false);
    expect(overlaps(hour, { from: timeOf(0), to: timeOf(9) })).toBe(true);
    expect(overlaps(hour, { from: null, to: null })).toBe(true);
  });
});
