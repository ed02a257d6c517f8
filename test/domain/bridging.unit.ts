import { describe, expect, it } from '@jest/globals';
import { undecidedRanges } from '../../src/domain/due_intervals.ts';
import { listIntervals } from './list_intervals.ts';
import { createSchedule, defaultDefinition } from './scheduled_export.ts';

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
