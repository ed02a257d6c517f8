import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { DateTime } from 'luxon';
import { resolveRange } from '../../../src/queries/dates.ts';
import type { Interval } from '../../../src/queries/buckets.ts';
import { contextOf } from './context.ts';
import { startOfInterval } from './start_of_interval.ts';
import { randomCases } from '../../setup/effort.ts';

const zones = [
  'UTC',
  'Europe/Berlin',
  'America/Havana',
  'Australia/Lord_Howe',
  'Asia/Beirut',
  'Asia/Kathmandu',
];
const intervals: readonly Interval[] = ['minute', 'hour', 'day', 'week', 'month'];
const longest: Readonly<Record<Interval, number>> = {
  minute: 3_600_000 * 30,
  hour: 86_400_000 * 20,
  day: 86_400_000 * 400,
  week: 86_400_000 * 800,
  month: 86_400_000 * 1500,
};

/** Ranges that often start or end near a clock change. */
const moment = fc.oneof(
  fc.integer({ min: Date.UTC(2024, 0), max: Date.UTC(2027, 0) }),
  fc
    .constantFrom(
      '2026-11-01T05:00Z',
      '2026-10-25T01:00Z',
      '2026-03-28T22:00Z',
      '2026-04-04T15:00Z',
      '2026-10-03T15:30Z',
    )
    .chain((turn) => fc.integer({ min: -7_200_000, max: 7_200_000 }).map((past) => Date.parse(turn) + past)),
);
const arbitrary = fc.record({
  zone: fc.constantFrom(...zones),
  interval: fc.constantFrom(...intervals),
  weekStart: fc.constantFrom('sunday' as const, 'monday' as const),
  from: moment,
  part: fc.double({ min: 0, max: 1, noNaN: true }),
  explicitDate: fc.boolean(),
});

describe('the intervals of a random range', () => {
  it('tile it: each starts at the start of an interval and contains all times up to the next one', () => {
    fc.assert(
      fc.property(arbitrary, ({ zone, interval, weekStart, from, part, explicitDate }) => {
        const end = from + Math.floor(part * longest[interval]);
        const iso = (time: number): string => DateTime.fromMillis(time, { zone }).toISO() ?? '';
        const range = { date_from: iso(from), date_to: iso(end), explicitDate };
        const context = contextOf(zone, new Date(end), weekStart);
        const { buckets, from: begin, to } = resolveRange(range, interval, context);
        const starts = new Set(buckets.map((bucket) => bucket.toMillis()));
        expect(starts.size).toBe(buckets.length);
        for (const [index, bucket] of buckets.entries())
          expect(bucket.toMillis()).toBeGreaterThan(buckets[index - 1]?.toMillis() ?? 0);
        const length = to.toMillis() - begin.toMillis();
        for (let step = 0; step <= 20; step += 1) {
          const inside = begin.plus(Math.floor((length * step) / 20));
          expect(starts).toContain(startOfInterval(inside, interval, weekStart).toMillis());
        }
        expect(startOfInterval(begin, interval, weekStart).toMillis()).toBe(buckets.at(0)?.toMillis());
        expect(startOfInterval(to, interval, weekStart).toMillis()).toBe(buckets.at(-1)?.toMillis());
      }),
      { numRuns: randomCases(150) },
    );
  });

  it('start at midnight, on the first day of the week or of the month', () => {
    fc.assert(
      fc.property(fc.constantFrom(...zones), moment, (zone, time) => {
        const at = DateTime.fromMillis(time, { zone });
        expect(startOfInterval(at, 'day', 'sunday').toISODate()).toBe(at.toISODate());
        expect(startOfInterval(at, 'week', 'sunday').weekday).toBe(7);
        expect(startOfInterval(at, 'week', 'monday').toISODate()).toBe(at.startOf('week').toISODate());
        expect(startOfInterval(at, 'month', 'sunday').toISODate()).toBe(at.startOf('month').toISODate());
      }),
    );
  });
});
