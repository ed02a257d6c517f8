import { describe, expect, it } from '@jest/globals';
import { intervalsOf } from './list_intervals.ts';
import { openSchedule, plainDefinition } from './scheduled_export.ts';

const daily = { ...plainDefinition, interval: 'day' };
const at = (time: string) => new Date(`2026-11-01T${time}Z`);
const iso = (time: string) => at(time).toISOString();
const nextDay = '2026-11-02T00:00:00.000Z';

/** An export that was made at one time of 1 November and whose clock stands at another. */
function openAt(time: string, definition = plainDefinition, created = time) {
  const schedule = openSchedule(at(created), definition);
  schedule.passTo(at(time));
  return schedule;
}

describe('a change of interval', () => {
  it('from day to hour bridges from midnight to the last full hour, which is due at once', () => {
    const schedule = openAt('15:30:00', daily);
    schedule.update({ interval: 'hour' });
    schedule.step();
    expect(schedule.scheduled).toEqual([{ start: iso('00:00:00'), end: iso('15:00:00') }]);
    schedule.pass(1);
    schedule.step();
    expect(schedule.scheduled[1]).toEqual({ start: iso('15:00:00'), end: iso('16:00:00') });
  });

  it('from hour to day bridges from the last full hour to midnight', () => {
    const schedule = openAt('15:30:00', plainDefinition, '13:10:00');
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

  it('and back within the same hour keeps the bridging interval that ended', () => {
    const schedule = openAt('15:30:00', daily);
    schedule.update({ interval: 'hour' });
    schedule.passTo(at('15:40:00'));
    schedule.update({ interval: 'day' });
    expect(intervalsOf(schedule.live().revisions, { start: iso('00:00:00'), end: nextDay })).toEqual([
      { start: iso('00:00:00'), end: iso('15:00:00') },
      { start: iso('15:00:00'), end: nextDay },
    ]);
  });

  it('exactly at a boundary of both bridges nothing', () => {
    const schedule = openAt('15:00:00', plainDefinition, '14:10:00');
    schedule.update({ interval: 'every 15 minutes' });
    schedule.passTo(at('15:15:00'));
    schedule.step();
    expect(schedule.scheduled).toEqual([
      { start: iso('14:00:00'), end: iso('15:00:00') },
      { start: iso('15:00:00'), end: iso('15:15:00') },
    ]);
  });

  it('while paused is backfilled with the boundaries of either definition when the pause ends', () => {
    const schedule = openAt('10:30:00', plainDefinition, '09:10:00');
    schedule.pause();
    schedule.passTo(at('12:20:00'));
    schedule.update({ interval: 'every 30 minutes' });
    schedule.passTo(at('13:10:00'));
    schedule.unpause(true);
    const [backfill] = schedule.backfills;
    while (backfill && schedule.stepBackfill(backfill));
    expect(backfill?.opened.map(({ end }) => end)).toEqual(
      ['11:00:00', '12:00:00', '12:30:00', '13:00:00'].map(iso),
    );
    schedule.step();
    expect(schedule.scheduled).toEqual([{ start: iso('09:00:00'), end: iso('10:00:00') }]);
    expect(schedule.skipped).toEqual([{ start: iso('10:00:00'), end: iso('13:00:00') }]);
  });
});

describe('the end of a pause', () => {
  it('exactly at a boundary leaves out the interval that ends there', () => {
    const schedule = openAt('10:30:00');
    schedule.pause();
    schedule.passTo(at('12:00:00'));
    schedule.unpause(false);
    expect(schedule.skipped).toEqual([{ start: iso('10:00:00'), end: iso('12:00:00') }]);
  });

  it('makes up only for intervals that start_at and end_at let the schedule run', () => {
    const schedule = openAt('10:30:00');
    schedule.pause();
    schedule.update({ start_at: iso('12:00:00'), end_at: iso('14:00:00') });
    schedule.passTo(at('18:10:00'));
    schedule.unpause(true);
    expect(schedule.backfills.map(({ range }) => range)).toEqual([
      { start: iso('11:00:00'), end: iso('14:00:00'), intervals: 3 },
    ]);
  });

  it('makes up for nothing when the schedule had come to its end before', () => {
    const schedule = openAt('10:30:00');
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
    const schedule = openAt('12:10:00', plainDefinition, '09:10:00');
    schedule.update({ end_at: iso('10:00:00') });
    schedule.step();
    expect(schedule.scheduled).toEqual([{ start: iso('09:00:00'), end: iso('10:00:00') }]);
    expect(schedule.skipped).toEqual([{ start: iso('10:00:00'), end: iso('12:00:00') }]);
  });

  it('of the interval resets offsets that the new one has no use for, whatever it knew of them', () => {
    const schedule = openAt('12:10:00', {
      ...plainDefinition,
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
  ])('that does not suit what is there is refused by %s', (attr, changes) => {
    const schedule = openAt('12:10:00', { ...daily, end_at: iso('22:00:00') });
    expect(() => schedule.update(changes)).toThrow(
      expect.objectContaining({ name: 'CommandRejected', code: 'invalid_input', attr }),
    );
  });
});
