import { afterEach, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import {
  countIntervals,
  intervalContaining,
  intervalFrom,
  isTimeZone,
  nextBoundary,
  parseInterval,
  previousBoundary,
  type ScheduleRevision,
  wholeIntervals,
} from '../../src/domain/intervals.ts';
import { listIntervals } from './list_intervals.ts';
import { anyInstant, anyTimeZone } from './zones.ts';
import { randomCases } from '../setup/effort.ts';

const revision = (interval: string, fields: Partial<ScheduleRevision> = {}): ScheduleRevision => ({
  interval,
  timezone: 'UTC',
  offset_hour: 0,
  offset_day: 0,
  effective_from: null,
  ...fields,
});
const anyRevision = fc
  .record({
    interval: fc.constantFrom('hour', 'day', 'week', 'month', 'every 5 minutes', 'every 15 minutes'),
    timezone: anyTimeZone,
    offset_hour: fc.integer({ min: 0, max: 23 }),
    offset_day: fc.integer({ min: 0, max: 27 }),
  })
  .map(({ interval, ...fields }) =>
    revision(interval, {
      ...fields,
      offset_day: interval === 'week' ? fields.offset_day % 7 : fields.offset_day,
    }),
  );
const hours = ({ start, end }: { start: string; end: string }) =>
  (new Date(end).getTime() - new Date(start).getTime()) / 3_600_000;

describe('interval names', () => {
  it.each(['hour', 'day', 'week', 'month', 'every 1 minutes', 'every 5 minutes', 'every 60 minutes'])(
    'accepts %s',
    (name) => {
      expect(parseInterval(name)).toBeDefined();
    },
  );
  it.each(['', 'hours', 'every 7 minutes', 'every 0 minutes', 'every 61 minutes', 'every 5 minutes '])(
    'rejects "%s"',
    (name) => {
      expect(parseInterval(name)).toBeUndefined();
    },
  );
});

describe('boundaries', () => {
  it('has days of 23 and 25 hours when DST starts and ends', () => {
    const daily = [revision('day', { timezone: 'US/Eastern' })];
    expect(hours(intervalContaining(daily, new Date('2024-03-10T12:00:00Z')))).toBe(23);
    expect(hours(intervalContaining(daily, new Date('2024-11-03T12:00:00Z')))).toBe(25);
  });

  it('starts weeks on the day and hour of the offset', () => {
    const weekly = revision('week', { offset_day: 1, offset_hour: 2 });
    expect(previousBoundary(weekly, new Date('2026-11-02T01:59:59Z')).toISOString()).toBe(
      '2026-10-26T02:00:00.000Z',
    );
    expect(previousBoundary(weekly, new Date('2026-11-02T02:00:00Z')).toISOString()).toBe(
      '2026-11-02T02:00:00.000Z',
    );
  });

  it('starts months on the day of the offset', () => {
    const monthly = revision('month', { offset_day: 14 });
    expect(previousBoundary(monthly, new Date('2026-03-10T00:00:00Z')).toISOString()).toBe(
      '2026-02-15T00:00:00.000Z',
    );
    expect(nextBoundary(monthly, new Date('2026-12-15T00:00:00Z')).toISOString()).toBe(
      '2027-01-15T00:00:00.000Z',
    );
  });

  it('uses the revision that was in force', () => {
    const revisions = [revision('hour'), revision('day', { effective_from: '2026-11-01T10:00:00.000Z' })];
    expect(intervalContaining(revisions, new Date('2026-11-01T09:30:00Z'))).toEqual({
      start: '2026-11-01T09:00:00.000Z',
      end: '2026-11-01T10:00:00.000Z',
    });
    expect(intervalContaining(revisions, new Date('2026-11-01T23:30:00Z'))).toEqual({
      start: '2026-11-01T10:00:00.000Z',
      end: '2026-11-02T00:00:00.000Z',
    });
  });

  it('returns the bounds of the ended intervals that overlap a range', () => {
    const bounds = (start: string, end: string) =>
      wholeIntervals(
        [revision('hour')],
        { start: new Date(`2026-11-01T${start}Z`), end: new Date(`2026-11-01T${end}Z`) },
        new Date('2026-11-01T11:45:00Z'),
      );
    const nine = '2026-11-01T09:00:00.000Z';
    const eleven = '2026-11-01T11:00:00.000Z';
    expect(bounds('09:30:00', '11:30:00')).toEqual({ start: nine, end: eleven });
    expect(bounds('09:00:00', '11:00:00')).toEqual({ start: nine, end: eleven });
    expect(bounds('09:59:59.999', '10:00:00.001')).toEqual({ start: nine, end: eleven });
    expect(bounds('11:10:00', '11:20:00')).toBeUndefined();
  });

  it('tiles time for any definition: each interval starts at the end of the previous one', () => {
    fc.assert(
      fc.property(anyRevision, anyInstant, (one, instant) => {
        const current = intervalContaining([one], instant);
        const following = intervalFrom([one], new Date(current.end));
        expect(new Date(current.start) <= instant && instant < new Date(current.end)).toBe(true);
        expect(intervalContaining([one], new Date(current.end))).toEqual(following);
        expect(intervalContaining([one], new Date(Date.parse(current.end) - 1))).toEqual(current);
        expect(intervalContaining([one], new Date(Date.parse(current.start)))).toEqual(current);
      }),
      { numRuns: randomCases(1_000) },
    );
  });

  it('counts as many intervals as listing them, across revisions too', () => {
    fc.assert(
      fc.property(anyRevision, anyRevision, anyInstant, (first, second, instant) => {
        const current = intervalContaining([first], instant);
        const revisions = [first, { ...second, effective_from: current.end }];
        const after = intervalFrom(revisions, new Date(current.end));
        const range = { start: current.start, end: intervalFrom(revisions, new Date(after.end)).end };
        expect(countIntervals(revisions, range)).toBe(listIntervals(revisions, range).length);
        expect(countIntervals(revisions, range)).toBe(3);
      }),
    );
  });

  it('computes a year of minutes, and stops counting above the limit', () => {
    const year = { start: '2025-01-01T00:00:00.000Z', end: '2026-01-01T00:00:00.000Z' };
    expect(countIntervals([revision('every 1 minutes')], year)).toBe(525_600);
    expect(countIntervals([revision('day')], year)).toBe(365);
    const longRange = { start: '0001-01-01T00:00:00.000Z', end: year.end };
    expect(countIntervals([revision('day')], longRange, 100_000)).toBeGreaterThan(100_000);
  });

  it.each([
    ['an hour skipped across midnight', 'America/Nuuk', 23, '2026-03-25', '2026-04-05'],
    ['a skipped day', 'Pacific/Apia', 22, '2011-12-25', '2012-01-05'],
  ])('agree in both directions around %s', (_, timezone, offset_hour, from, to) => {
    const daily = [revision('day', { timezone, offset_hour })];
    const { start } = intervalContaining(daily, new Date(from));
    const days = listIntervals(daily, { start, end: new Date(to).toISOString() });
    for (const day of days)
      expect(intervalContaining(daily, new Date(new Date(day.end).getTime() - 1))).toEqual(day);
  });

  describe('at an hour that DST repeats', () => {
    afterEach(() => {
      jest.useRealTimers();
    });
    const daily = revision('day', { timezone: 'Europe/Berlin', offset_hour: 2 });

    it.each(['2026-07-01', '2026-12-01'])('is the first of the two, if today is %s', (today) => {
      jest.useFakeTimers({ now: new Date(today) });
      expect(previousBoundary(daily, new Date('2026-10-25T12:00:00Z')).toISOString()).toBe(
        '2026-10-25T00:00:00.000Z',
      );
      expect(previousBoundary(daily, new Date('2026-03-29T12:00:00Z')).toISOString()).toBe(
        '2026-03-29T01:00:00.000Z',
      );
    });

    it('does not depend on the current date, in any zone', () => {
      fc.assert(
        fc.property(anyRevision, anyInstant, anyInstant, (one, instant, today) => {
          const boundaries = [previousBoundary(one, instant), nextBoundary(one, instant)];
          jest.useFakeTimers({ now: today });
          expect([previousBoundary(one, instant), nextBoundary(one, instant)]).toEqual(boundaries);
        }),
        { numRuns: randomCases(300) },
      );
    });
  });
});

describe('time zones', () => {
  it.each([
    'UTC',
    'utc',
    'Europe/Berlin',
    'US/Pacific',
    'Japan',
    'EST',
    'EST5EDT',
    'Etc/GMT+5',
    'Asia/Calcutta',
  ])('%s is valid', (name) => {
    expect(isTimeZone(name)).toBe(true);
  });

  it.each(['+05:00', '-0500', '+05', 'CST', 'IST', 'Mars/Base', '', 'Europe/Berlin; drop'])(
    '%s is invalid',
    (name) => {
      expect(isTimeZone(name)).toBe(false);
    },
  );
});
