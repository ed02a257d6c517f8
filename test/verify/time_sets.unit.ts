import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { DataInterval } from '../../src/domain/intervals.ts';
import { intersect, subtract, union } from '../../src/verify/owed_time.ts';

const timeOf = (hour: number): string => new Date(Date.UTC(2026, 0, 1, hour)).toISOString();
const hoursOf = (ranges: readonly DataInterval[]): number[] =>
  ranges.flatMap(({ start, end }) => {
    const [from = 0, to = 0] = [start, end].map(
      (time) => (Date.parse(time) - Date.UTC(2026, 0, 1)) / 3_600_000,
    );
    return Array.from({ length: to - from }, (_, index) => from + index);
  });

const ranges = fc.array(
  fc
    .tuple(fc.integer({ min: 0, max: 30 }), fc.integer({ min: 0, max: 6 }))
    .map(([hour, length]) => ({ start: timeOf(hour), end: timeOf(hour + length) })),
  { maxLength: 8 },
);

describe('sets of time', () => {
  it('have the hours that sets of hours have, sorted, and are joined', () => {
    fc.assert(
      fc.property(ranges, ranges, ranges, (one, other, third) => {
        const [left, right] = [new Set(hoursOf(one)), new Set(hoursOf([...other, ...third]))];
        const ascending = (hours: Iterable<number>) => [...hours].sort((first, second) => first - second);
        const expected: [DataInterval[], Set<number>][] = [
          [union(one), left],
          [subtract(one, other, third), new Set([...left].filter((hour) => !right.has(hour)))],
          [intersect(one, [...other, ...third]), new Set([...left].filter((hour) => right.has(hour)))],
        ];
        for (const [set, hours] of expected) {
          expect(hoursOf(set)).toEqual(ascending(hours));
          expect(set.slice(1).every(({ start }, index) => start > (set[index]?.end ?? ''))).toBe(true);
        }
      }),
    );
  });
});
