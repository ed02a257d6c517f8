import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  intervalContaining,
  intervalFrom,
  intervalsTouching,
  nextBoundary,
  parseInterval,
  previousBoundary,
  type SchedulePiece,
} from '../../src/domain/intervals.ts';

const piece = (interval: string, members: Partial<SchedulePiece> = {}): SchedulePiece => ({
  interval,
  timezone: 'UTC',
  offset_hour: 0,
  offset_day: 0,
  effective_from: null,
  ...members,
});
const hours = ({ start, end }: { start: string; end: string }) =>
  (new Date(end).getTime() - new Date(start).getTime()) / 3_600_000;

describe('interval names', () => {
  it.each(['hour', 'day', 'week', 'month', 'every 1 minutes', 'every 5 minutes', 'every 60 minutes'])(
    'knows %s',
    (name) => {
      expect(parseInterval(name)).toBeDefined();
    },
  );
  it.each(['', 'hours', 'every 7 minutes', 'every 0 minutes', 'every 61 minutes', 'every 5 minutes '])(
    'refuses "%s"',
    (name) => {
      expect(parseInterval(name)).toBeUndefined();
    },
  );
});

describe('boundaries', () => {
  it('makes days of 23 and 25 hours where DST begins and ends', () => {
    const daily = [piece('day', { timezone: 'US/Eastern' })];
    expect(hours(intervalContaining(daily, new Date('2024-03-10T12:00:00Z')))).toBe(23);
    expect(hours(intervalContaining(daily, new Date('2024-11-03T12:00:00Z')))).toBe(25);
  });

  it('starts weeks on the day and hour of the offset', () => {
    const weekly = piece('week', { offset_day: 1, offset_hour: 2 });
    expect(previousBoundary(weekly, new Date('2026-11-02T01:59:59Z')).toISOString()).toBe(
      '2026-10-26T02:00:00.000Z',
    );
    expect(previousBoundary(weekly, new Date('2026-11-02T02:00:00Z')).toISOString()).toBe(
      '2026-11-02T02:00:00.000Z',
    );
  });

  it('starts months on the day of the offset', () => {
    const monthly = piece('month', { offset_day: 14 });
    expect(previousBoundary(monthly, new Date('2026-03-10T00:00:00Z')).toISOString()).toBe(
      '2026-02-15T00:00:00.000Z',
    );
    expect(nextBoundary(monthly, new Date('2026-12-15T00:00:00Z')).toISOString()).toBe(
      '2027-01-15T00:00:00.000Z',
    );
  });

  it('uses the definition that was in force', () => {
    const pieces = [piece('hour'), piece('day', { effective_from: '2026-11-01T10:00:00.000Z' })];
    expect(intervalContaining(pieces, new Date('2026-11-01T09:30:00Z'))).toEqual({
      start: '2026-11-01T09:00:00.000Z',
      end: '2026-11-01T10:00:00.000Z',
    });
    expect(intervalContaining(pieces, new Date('2026-11-01T23:30:00Z'))).toEqual({
      start: '2026-11-01T10:00:00.000Z',
      end: '2026-11-02T00:00:00.000Z',
    });
  });

  it('lists the whole intervals that touch a range and have ended', () => {
    const touching = [
      ...intervalsTouching(
        [piece('hour')],
        new Date('2026-11-01T09:30:00Z'),
        new Date('2026-11-01T11:30:00Z'),
        new Date('2026-11-01T11:45:00Z'),
      ),
    ];
    expect(touching.map(({ start }) => start)).toEqual([
      '2026-11-01T09:00:00.000Z',
      '2026-11-01T10:00:00.000Z',
    ]);
  });

  it('tiles time for any definition: what contains an instant follows from what contains the one before', () => {
    const intervals = fc.constantFrom('hour', 'day', 'week', 'month', 'every 5 minutes', 'every 15 minutes');
    const zones = fc.constantFrom(
      'UTC',
      'Europe/Berlin',
      'America/New_York',
      'Asia/Kathmandu',
      'Australia/Lord_Howe',
      // Skips the hour before midnight when summer begins.
      'America/Nuuk',
      // Skipped a whole day in 2011.
      'Pacific/Apia',
    );
    fc.assert(
      fc.property(
        intervals,
        zones,
        fc.integer({ min: 0, max: 23 }),
        fc.integer({ min: 0, max: 6 }),
        fc.date({ min: new Date('2008-01-01'), max: new Date('2030-01-01'), noInvalidDate: true }),
        (interval, timezone, offset_hour, offset_day, instant) => {
          const pieces = [piece(interval, { timezone, offset_hour, offset_day })];
          const current = intervalContaining(pieces, instant);
          const following = intervalFrom(pieces, new Date(current.end));
          expect(new Date(current.start) <= instant && instant < new Date(current.end)).toBe(true);
          expect(intervalContaining(pieces, new Date(current.end))).toEqual(following);
        },
      ),
    );
  });

  it.each([
    ['an hour skipped across midnight', 'America/Nuuk', 23, '2026-03-25', '2026-04-05'],
    ['a skipped day', 'Pacific/Apia', 22, '2011-12-25', '2012-01-05'],
  ])('agree in both directions around %s', (_, timezone, offset_hour, from, to) => {
    const daily = [piece('day', { timezone, offset_hour })];
    const days = [...intervalsTouching(daily, new Date(from), new Date(to), new Date(to))];
    for (const day of days)
      expect(intervalContaining(daily, new Date(new Date(day.end).getTime() - 1))).toEqual(day);
  });
});
