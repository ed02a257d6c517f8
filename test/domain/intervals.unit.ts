import { afterEach, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { undecidedRanges } from '../../src/domain/batch_export.ts';
import {
  canShareIntervals,
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
import { randomCases } from '../setup/effort.ts';
import { listIntervals } from './list_intervals.ts';
import { createSchedule, defaultDefinition } from './scheduled_export.ts';
import { anyInstant, anyTimeZone } from './zones.ts';

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

describe('the boundaries of intervals', () => {
  it('are 23 or 25 hours apart on days when DST starts or ends', () => {
    const daily = [revision('day', { timezone: 'US/Eastern' })];
    expect(hours(intervalContaining(daily, new Date('2024-03-10T12:00:00Z')))).toBe(23);
    expect(hours(intervalContaining(daily, new Date('2024-11-03T12:00:00Z')))).toBe(25);
  });

  it('start weeks on the day and hour of the offset', () => {
    const weekly = revision('week', { offset_day: 1, offset_hour: 2 });
    expect(previousBoundary(weekly, new Date('2026-11-02T01:59:59Z')).toISOString()).toBe(
      '2026-10-26T02:00:00.000Z',
    );
    expect(previousBoundary(weekly, new Date('2026-11-02T02:00:00Z')).toISOString()).toBe(
      '2026-11-02T02:00:00.000Z',
    );
  });

  it('start months on the day of the offset', () => {
    const monthly = revision('month', { offset_day: 14 });
    expect(previousBoundary(monthly, new Date('2026-03-10T00:00:00Z')).toISOString()).toBe(
      '2026-02-15T00:00:00.000Z',
    );
    expect(nextBoundary(monthly, new Date('2026-12-15T00:00:00Z')).toISOString()).toBe(
      '2027-01-15T00:00:00.000Z',
    );
  });

  it('follow the revision that was in force', () => {
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

  it('are found for the ended intervals that overlap a range', () => {
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

  it('tile time for any definition: each interval starts at the end of the previous one', () => {
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

  it('are counted as often as they are listed, across revisions too', () => {
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

  it('are computed for a year of minutes, and not counted above the limit', () => {
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

const daily = { ...defaultDefinition, interval: 'day' };
const at = (time: string) => new Date(`2026-11-01T${time}Z`);
const iso = (time: string) => at(time).toISOString();
const nextDay = '2026-11-02T00:00:00.000Z';

/** A schedule created at one time of 1 November, with its clock at another. */
function createScheduleAt(time: string, definition = defaultDefinition, created = time) {
  const schedule = createSchedule(at(created), definition);
  schedule.passTo(at(time));
  return schedule;
}

describe('a change of interval', () => {
  it('from day to hour bridges from midnight to the last full hour, which is due immediately', () => {
    const schedule = createScheduleAt('15:30:00', daily);
    schedule.update({ interval: 'hour' });
    schedule.step();
    expect(schedule.scheduled).toEqual([{ start: iso('00:00:00'), end: iso('15:00:00') }]);
    schedule.pass(1);
    schedule.step();
    expect(schedule.scheduled[1]).toEqual({ start: iso('15:00:00'), end: iso('16:00:00') });
  });

  it('from hour to day bridges from the last full hour to midnight', () => {
    const schedule = createScheduleAt('15:30:00', defaultDefinition, '13:10:00');
    schedule.update({ interval: 'day' });
    schedule.step();
    schedule.pass(1);
    schedule.step();
    expect(schedule.scheduled).toEqual([
      { start: iso('13:00:00'), end: iso('14:00:00') },
      { start: iso('14:00:00'), end: iso('15:00:00') },
      { start: iso('15:00:00'), end: nextDay },
    ]);
  });

  it('and back within the same hour keeps the ended bridging interval', () => {
    const schedule = createScheduleAt('15:30:00', daily);
    schedule.update({ interval: 'hour' });
    schedule.passTo(at('15:40:00'));
    schedule.update({ interval: 'day' });
    expect(listIntervals(schedule.live().revisions, { start: iso('00:00:00'), end: nextDay })).toEqual([
      { start: iso('00:00:00'), end: iso('15:00:00') },
      { start: iso('15:00:00'), end: nextDay },
    ]);
  });

  it('exactly at a boundary of both needs no bridging interval', () => {
    const schedule = createScheduleAt('15:00:00', defaultDefinition, '14:10:00');
    schedule.update({ interval: 'every 15 minutes' });
    schedule.passTo(at('15:15:00'));
    schedule.step();
    expect(schedule.scheduled).toEqual([
      { start: iso('14:00:00'), end: iso('15:00:00') },
      { start: iso('15:00:00'), end: iso('15:15:00') },
    ]);
  });

  it('while paused is backfilled by both revisions when the pause ends', () => {
    const schedule = createScheduleAt('10:30:00', defaultDefinition, '09:10:00');
    schedule.pause();
    schedule.passTo(at('12:20:00'));
    schedule.update({ interval: 'every 30 minutes' });
    schedule.passTo(at('13:10:00'));
    schedule.unpause(true);
    const [backfill] = schedule.backfills;
    while (backfill && schedule.stepBackfill(backfill));
    expect(backfill?.intervals.map(({ end }) => end)).toEqual(
      ['11:00:00', '12:00:00', '12:30:00', '13:00:00'].map(iso),
    );
    schedule.step();
    expect(schedule.scheduled).toEqual([{ start: iso('09:00:00'), end: iso('10:00:00') }]);
    expect(schedule.skipped).toEqual([{ start: iso('10:00:00'), end: iso('13:00:00') }]);
  });
});

describe('the end of a pause', () => {
  it('exactly at a boundary skips the interval that ends there', () => {
    const schedule = createScheduleAt('10:30:00');
    schedule.pause();
    schedule.passTo(at('12:00:00'));
    schedule.unpause(false);
    expect(schedule.skipped).toEqual([{ start: iso('10:00:00'), end: iso('12:00:00') }]);
  });

  it('backfills only intervals within start_at and end_at', () => {
    const schedule = createScheduleAt('10:30:00');
    schedule.pause();
    schedule.update({ start_at: iso('12:00:00'), end_at: iso('14:00:00') });
    schedule.passTo(at('18:10:00'));
    schedule.unpause(true);
    expect(schedule.backfills.map(({ range }) => range)).toEqual([
      { start: iso('11:00:00'), end: iso('14:00:00'), intervals: 3 },
    ]);
  });

  it('backfills nothing if the schedule had already ended', () => {
    const schedule = createScheduleAt('10:30:00');
    schedule.pause();
    schedule.update({ end_at: iso('09:00:00') });
    schedule.passTo(at('12:10:00'));
    schedule.unpause(true);
    expect(schedule.backfills).toEqual([]);
    expect(schedule.skipped).toEqual([{ start: iso('10:00:00'), end: iso('12:00:00') }]);
  });
});

describe('an update', () => {
  it('to an end in the past skips what ends after it', () => {
    const schedule = createScheduleAt('12:10:00', defaultDefinition, '09:10:00');
    schedule.update({ end_at: iso('10:00:00') });
    schedule.step();
    expect(schedule.scheduled).toEqual([{ start: iso('09:00:00'), end: iso('10:00:00') }]);
    expect(undecidedRanges(schedule.live(), schedule.now())).toEqual([
      { start: iso('10:00:00'), end: iso('12:00:00'), reason: 'after end_at' },
    ]);
  });

  it('of the interval resets offsets that do not apply to the new one', () => {
    const schedule = createScheduleAt('12:10:00', {
      ...defaultDefinition,
      interval: 'month',
      offset_day: 27,
      offset_hour: 3,
    });
    schedule.update({ interval: 'week' });
    expect(schedule.live().definition).toMatchObject({ interval: 'week', offset_day: 0, offset_hour: 3 });
    schedule.update({ interval: 'hour' });
    expect(schedule.live().definition).toMatchObject({ interval: 'hour', offset_day: 0, offset_hour: 0 });
  });

  it.each([
    ['offset_day', { offset_day: 1 }],
    ['start_at', { start_at: nextDay }],
    ['end_at', { start_at: iso('20:00:00'), end_at: iso('20:00:00') }],
  ])('that is inconsistent with the definition is rejected with %s', (attr, changes) => {
    const schedule = createScheduleAt('12:10:00', { ...daily, end_at: iso('22:00:00') });
    expect(() => schedule.update(changes)).toThrow(
      expect.objectContaining({ name: 'CommandRejected', code: 'invalid_input', attr }),
    );
  });
});

describe('two schedules', () => {
  const revision = (interval: string, effective_from: string | null = null): ScheduleRevision => ({
    interval,
    timezone: 'UTC',
    offset_hour: 0,
    offset_day: 0,
    effective_from,
  });
  const noon = '2026-11-01T12:00:00.000Z';
  const late = '2026-11-01T23:00:00.000Z';

  it.each([
    ['of different lengths', [revision('hour')], [revision('day')], false],
    ['of one length with two names', [revision('hour')], [revision('every 60 minutes')], true],
    ['that once had the same length', [revision('hour'), revision('day', noon)], [revision('hour')], true],
    [
      'of the same length at different times',
      [revision('hour'), revision('day', noon)],
      [revision('day'), revision('hour', noon)],
      false,
    ],
    [
      'with a bridging interval that equals one of the other',
      [revision('every 5 minutes'), revision('day', late)],
      [revision('hour')],
      true,
    ],
    [
      'with a bridging interval that differs',
      [revision('every 5 minutes'), revision('day', noon)],
      [revision('hour')],
      false,
    ],
  ])('%s', (_, one, other, expected) => {
    expect(canShareIntervals(one, other)).toBe(expected);
    expect(canShareIntervals(other, one)).toBe(expected);
  });
});
