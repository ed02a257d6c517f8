import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { intervalContaining, type DataInterval } from '../../src/domain/intervals.ts';
import { countIntervals } from '../../src/domain/interval_ranges.ts';
import { dueRanges } from '../../src/domain/due_ranges.ts';
import { anySchedule } from './schedule_actions.ts';
import { intervalsOf } from './list_intervals.ts';
import { copyOf, type Schedule } from './scheduled_export.ts';

const nameOf = ({ start, end }: DataInterval): string => `${start}/${end}`;

/** Expects that ranges cover a stretch of time without a gap and without an overlap. */
function expectTiling(ranges: readonly DataInterval[], { start, end }: DataInterval): void {
  let until = start;
  for (const range of ranges.toSorted((one, other) => Date.parse(one.start) - Date.parse(other.start))) {
    expect(range.start).toBe(until);
    expect(Date.parse(range.end)).toBeGreaterThan(Date.parse(range.start));
    until = range.end;
  }
  expect(until).toBe(end);
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

const boundaryBefore = (schedule: Schedule): string =>
  intervalContaining(schedule.live().revisions, schedule.now()).start;

/** What has ended since the first interval, with the boundaries of now. */
const endedOf = (schedule: Schedule): DataInterval[] =>
  intervalsOf(schedule.live().revisions, { start: schedule.first, end: boundaryBefore(schedule) });

describe('a schedule, whatever happens to it', () => {
  it('has each instant since its creation in exactly one run or skipped range', () => {
    fc.assert(
      fc.property(anySchedule, ({ open, happenings }) => {
        const schedule = open();
        for (const { run } of happenings) run(schedule);
        schedule.unpause(false);
        schedule.pass(1);
        schedule.catchUp();
        expectTiling([...schedule.scheduled, ...schedule.skipped], {
          start: schedule.first,
          end: boundaryBefore(schedule),
        });
      }),
      { numRuns: 400 },
    );
  });

  it('never moves the boundaries of an interval that has ended, since a backfill may have exported it', () => {
    fc.assert(
      fc.property(anySchedule, ({ open, happenings }) => {
        const schedule = open();
        const ended = new Map<string, DataInterval>();
        for (const { run } of happenings) {
          run(schedule);
          for (const interval of endedOf(schedule)) ended.set(nameOf(interval), interval);
        }
        for (const interval of ended.values())
          expect(intervalContaining(schedule.live().revisions, new Date(interval.start))).toEqual(interval);
      }),
      { numRuns: 150 },
    );
  });

  it('opens runs oldest first, each of a whole interval', () => {
    fc.assert(
      fc.property(anySchedule, ({ open, happenings }) => {
        const schedule = open();
        for (const { run } of happenings) run(schedule);
        schedule.catchUp();
        const starts = schedule.scheduled.map(({ start }) => Date.parse(start));
        expect(starts).toEqual(starts.toSorted((one, other) => one - other));
        for (const interval of schedule.scheduled)
          expect(intervalContaining(schedule.live().revisions, new Date(interval.start))).toEqual(interval);
      }),
      { numRuns: 200 },
    );
  });

  it('owes what it opens as soon as it may, no more and no less', () => {
    fc.assert(
      fc.property(anySchedule, ({ open, happenings }) => {
        const schedule = open();
        for (const { run } of happenings) {
          run(schedule);
          const { revisions } = schedule.live();
          const due = dueRanges(schedule.live(), schedule.now());
          const twin = copyOf(schedule);
          twin.unpause(false);
          twin.catchUp();
          const opened = twin.scheduled.slice(schedule.scheduled.length);
          expect(opened).toEqual(due.flatMap((range) => intervalsOf(revisions, range)));
          expect(sum(due.map((range) => countIntervals(revisions, range)))).toBe(opened.length);
        }
      }),
      { numRuns: 150 },
    );
  });

  it('is backfilled in intervals that were in force, all that its range touches and no other', () => {
    fc.assert(
      fc.property(anySchedule, ({ open, happenings }) => {
        const schedule = open();
        for (const { run } of happenings) run(schedule);
        for (const backfill of schedule.backfills) {
          while (schedule.stepBackfill(backfill)) expect(backfill.opened.length).toBeLessThan(20_000);
          expect(backfill.state.status).toBe('Completed');
          expect(backfill.opened).toHaveLength(backfill.range.intervals);
          expectTiling(backfill.opened, backfill.range);
          for (const interval of backfill.opened)
            expect(intervalContaining(schedule.live().revisions, new Date(interval.start))).toEqual(interval);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('leads to a new cut of time by one bridging interval at most, and has the new one in force at once', () => {
    fc.assert(
      fc.property(anySchedule, anySchedule, ({ open, happenings }, other) => {
        const schedule = open();
        for (const { run } of happenings) run(schedule);
        const before = schedule.live().revisions;
        const current = intervalContaining(before, schedule.now());
        const { interval, timezone, offset_hour, offset_day } = other.open().live().definition;
        const wanted = { interval, timezone, offset_hour, offset_day };
        schedule.update(wanted);
        const { revisions } = schedule.live();
        const after = intervalContaining(revisions, schedule.now());
        const grid = [{ ...wanted, effective_from: null }];
        const onGrid = (boundary: string) => intervalContaining(grid, new Date(boundary)).start === boundary;
        const cuts = intervalsOf(revisions, { start: current.start, end: after.end });
        expect(cuts.length).toBeLessThanOrEqual(2);
        expect(onGrid(after.end)).toBe(true);
        expect(cuts.filter(({ start, end }) => !(onGrid(start) && onGrid(end))).length).toBeLessThanOrEqual(
          1,
        );
      }),
      { numRuns: 400 },
    );
  });
});
