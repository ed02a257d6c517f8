import { describe, expect, it } from '@jest/globals';
import type { BatchExportDefinition } from '../../src/domain/batch_export.ts';
import { undecidedRanges } from '../../src/domain/due_intervals.ts';
import { createSchedule, defaultDefinition, type Schedule } from './scheduled_export.ts';

const created = new Date('2026-11-01T10:00:00.000Z');
const minuteMs = 60_000;
const daysLater = (days: number): Date => new Date(created.getTime() + days * 24 * 60 * minuteMs);

const everyMinute = (bounds: Partial<BatchExportDefinition>): Schedule =>
  createSchedule(created, { ...defaultDefinition, interval: 'every 1 minutes', ...bounds });

/** Lets the schedule decide at each of these times. */
function stepAt(schedule: Schedule, ...times: readonly Date[]): void {
  for (const time of times) {
    schedule.passTo(time);
    schedule.catchUp();
  }
}

describe('a schedule outside its bounds', () => {
  it('sleeps until its first interval is due, and then skips all before it as one range', () => {
    const start = daysLater(400);
    const schedule = everyMinute({ start_at: start.toISOString() });
    stepAt(schedule, daysLater(0.5), daysLater(1), daysLater(399.9));
    expect(schedule.skipped).toEqual([]);
    // The interval that ends at start_at is the first one.
    expect(schedule.decision()).toEqual({ events: [], wake_at: start, waits_for_slot: false });
    stepAt(schedule, start);
    const boundary = new Date(start.getTime() - minuteMs).toISOString();
    expect(schedule.skipped).toEqual([{ start: created.toISOString(), end: boundary }]);
    expect(schedule.scheduled).toEqual([{ start: boundary, end: start.toISOString() }]);
  });

  it('decides nothing after end_at and sleeps until a command', () => {
    const schedule = everyMinute({ end_at: daysLater(-2).toISOString() });
    stepAt(schedule, daysLater(1), daysLater(2), daysLater(700));
    expect([schedule.scheduled, schedule.skipped]).toEqual([[], []]);
    expect(schedule.decision()).toEqual({ events: [], wake_at: null, waits_for_slot: false });
    expect(undecidedRanges(schedule.live(), schedule.now())).toEqual([
      { start: created.toISOString(), end: daysLater(700).toISOString(), reason: 'after end_at' },
    ]);
  });

  it('exports until end_at, then sleeps', () => {
    const end = new Date(created.getTime() + 2.5 * minuteMs);
    const schedule = everyMinute({ end_at: end.toISOString() });
    stepAt(schedule, end, daysLater(1));
    expect(schedule.scheduled).toHaveLength(2);
    expect(schedule.decision()).toEqual({ events: [], wake_at: null, waits_for_slot: false });
  });

  it.each([
    ['end_at', { end_at: created.toISOString() }, { end_at: null }],
    ['start_at', { start_at: daysLater(900).toISOString() }, { start_at: null }],
  ])(
    'records the range that it has slept through when %s is removed, and creates no run of it',
    (_, bounds, changes) => {
      const schedule = everyMinute(bounds);
      stepAt(schedule, daysLater(1), daysLater(30));
      schedule.update(changes);
      schedule.catchUp();
      expect(schedule.skipped).toEqual([{ start: created.toISOString(), end: daysLater(30).toISOString() }]);
      expect(schedule.scheduled).toEqual([]);
      schedule.passToBoundary();
      schedule.catchUp();
      expect(schedule.scheduled).toHaveLength(1);
    },
  );

  it('keeps due intervals that wait for a slot when end_at moves past them', () => {
    const schedule = everyMinute({ end_at: new Date(created.getTime() + 6 * minuteMs).toISOString() });
    schedule.passTo(new Date(created.getTime() + 10 * minuteMs));
    schedule.step();
    expect(schedule.scheduled).toHaveLength(3);
    expect(schedule.decision().waits_for_slot).toBe(true);
    schedule.update({ end_at: null });
    schedule.catchUp();
    expect(schedule.scheduled).toHaveLength(6);
    expect(schedule.skipped).toEqual([
      {
        start: new Date(created.getTime() + 6 * minuteMs).toISOString(),
        end: new Date(created.getTime() + 10 * minuteMs).toISOString(),
      },
    ]);
  });

  it('records what a pause and its bounds left undecided once it is unpaused', () => {
    const schedule = everyMinute({ start_at: daysLater(3).toISOString() });
    schedule.passTo(daysLater(1));
    schedule.pause();
    schedule.passTo(daysLater(2));
    schedule.unpause(false);
    schedule.catchUp();
    const whole = (from: number, to: number) => ({
      start: daysLater(from).toISOString(),
      end: daysLater(to).toISOString(),
    });
    expect(schedule.skipped).toEqual([whole(1, 2), whole(0, 1)]);
    expect(schedule.live()).toMatchObject({ scheduled_until: daysLater(2).toISOString(), skips_ahead: [] });
  });
});
