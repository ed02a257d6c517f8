import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { countIntervals, type DataInterval, intervalContaining } from '../../src/domain/intervals.ts';
import { dueRanges, undecidedRanges } from '../../src/domain/due_intervals.ts';
import { scheduleArb } from './schedule_actions.ts';
import { listIntervals } from './list_intervals.ts';
import { copyOf, type Schedule } from './scheduled_export.ts';
import { randomCases } from '../setup/effort.ts';

const keyOf = ({ start, end }: DataInterval): string => `${start}/${end}`;

/** Expects that ranges cover a period without gaps or overlaps. */
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

/** The intervals that have ended since the first, by the current revisions. */
const endedOf = (schedule: Schedule): DataInterval[] =>
  listIntervals(schedule.live().revisions, { start: schedule.first, end: boundaryBefore(schedule) });

describe('a schedule after any sequence of actions', () => {
  it('covers each instant since its creation with exactly one run, or a range that is skipped or past end_at', () => {
    fc.assert(
      fc.property(scheduleArb, ({ createSchedule, actions }) => {
        const schedule = createSchedule();
        for (const { run } of actions) run(schedule);
        schedule.unpause(false);
        schedule.pass(1);
        schedule.catchUp();
        const asleep = undecidedRanges(schedule.live(), schedule.now());
        expectTiling([...schedule.scheduled, ...schedule.skipped, ...asleep], {
          start: schedule.first,
          end: boundaryBefore(schedule),
        });
      }),
      { numRuns: randomCases(400) },
    );
  });

  it('never moves the boundaries of an ended interval, which a backfill may have exported', () => {
    fc.assert(
      fc.property(scheduleArb, ({ createSchedule, actions }) => {
        const schedule = createSchedule();
        const ended = new Map<string, DataInterval>();
        for (const { run } of actions) {
          run(schedule);
          for (const interval of endedOf(schedule)) ended.set(keyOf(interval), interval);
        }
        for (const interval of ended.values())
          expect(intervalContaining(schedule.live().revisions, new Date(interval.start))).toEqual(interval);
      }),
      { numRuns: randomCases(150) },
    );
  });

  it('creates runs oldest first, each of a whole interval', () => {
    fc.assert(
      fc.property(scheduleArb, ({ createSchedule, actions }) => {
        const schedule = createSchedule();
        for (const { run } of actions) run(schedule);
        schedule.catchUp();
        const starts = schedule.scheduled.map(({ start }) => Date.parse(start));
        expect(starts).toEqual(starts.toSorted((one, other) => one - other));
        for (const interval of schedule.scheduled)
          expect(intervalContaining(schedule.live().revisions, new Date(interval.start))).toEqual(interval);
      }),
      { numRuns: randomCases(200) },
    );
  });

  it('reports exactly the intervals as due that it then creates runs for', () => {
    fc.assert(
      fc.property(scheduleArb, ({ createSchedule, actions }) => {
        const schedule = createSchedule();
        for (const { run } of actions) {
          run(schedule);
          const { revisions } = schedule.live();
          const due = dueRanges(schedule.live(), schedule.now());
          const copy = copyOf(schedule);
          copy.unpause(false);
          copy.catchUp();
          const newRuns = copy.scheduled.slice(schedule.scheduled.length);
          expect(newRuns).toEqual(due.flatMap((range) => listIntervals(revisions, range)));
          expect(sum(due.map((range) => countIntervals(revisions, range)))).toBe(newRuns.length);
        }
      }),
      { numRuns: randomCases(150) },
    );
  });

  it('says of each ended interval that it has not decided about what it would do', () => {
    fc.assert(
      fc.property(scheduleArb, ({ createSchedule, actions }) => {
        const schedule = createSchedule();
        for (const { run } of actions) {
          run(schedule);
          const live = schedule.live();
          const undecided = undecidedRanges(live, schedule.now());
          const until = intervalContaining(live.revisions, schedule.now()).start;
          const skipped = live.skips_ahead.filter(({ start }) => Date.parse(start) < Date.parse(until));
          const ranges = [...undecided, ...skipped].toSorted(
            (one, other) => Date.parse(one.start) - Date.parse(other.start),
          );
          if (Date.parse(live.scheduled_until) < Date.parse(until))
            expectTiling(ranges, { start: live.scheduled_until, end: ranges.at(-1)?.end ?? '' });
          expect(Date.parse(ranges.at(-1)?.end ?? until)).toBeGreaterThanOrEqual(Date.parse(until));
          const { start_at, end_at } = live.definition;
          const isRight = {
            'before start_at': (end: string) => Date.parse(end) < Date.parse(start_at ?? ''),
            'after end_at': (end: string) => Date.parse(end) > Date.parse(end_at ?? ''),
            paused: () => live.paused,
          };
          const wrong = undecided.filter(({ end, reason }) => reason !== null && !isRight[reason](end));
          expect(wrong).toEqual([]);
        }
      }),
      { numRuns: randomCases(150) },
    );
  });

  it('is backfilled with exactly the intervals that overlap the range, by the revisions in force', () => {
    fc.assert(
      fc.property(scheduleArb, ({ createSchedule, actions }) => {
        const schedule = createSchedule();
        for (const { run } of actions) run(schedule);
        for (const backfill of schedule.backfills) {
          while (schedule.stepBackfill(backfill)) expect(backfill.intervals.length).toBeLessThan(20_000);
          expect(backfill.state.status).toBe('Completed');
          expect(backfill.intervals).toHaveLength(backfill.range.intervals);
          expectTiling(backfill.intervals, backfill.range);
          for (const interval of backfill.intervals)
            expect(intervalContaining(schedule.live().revisions, new Date(interval.start))).toEqual(interval);
        }
      }),
      { numRuns: randomCases(300) },
    );
  });

  it('applies a new revision immediately, with at most one bridging interval', () => {
    fc.assert(
      fc.property(scheduleArb, scheduleArb, ({ createSchedule, actions }, other) => {
        const schedule = createSchedule();
        for (const { run } of actions) run(schedule);
        const before = schedule.live().revisions;
        const current = intervalContaining(before, schedule.now());
        const { interval, timezone, offset_hour, offset_day } = other.createSchedule().live().definition;
        const newFields = { interval, timezone, offset_hour, offset_day };
        schedule.update(newFields);
        const { revisions } = schedule.live();
        const after = intervalContaining(revisions, schedule.now());
        const newGrid = [{ ...newFields, effective_from: null }];
        const onGrid = (boundary: string) =>
          intervalContaining(newGrid, new Date(boundary)).start === boundary;
        const intervals = listIntervals(revisions, { start: current.start, end: after.end });
        expect(intervals.length).toBeLessThanOrEqual(2);
        expect(onGrid(after.end)).toBe(true);
        expect(
          intervals.filter(({ start, end }) => !(onGrid(start) && onGrid(end))).length,
        ).toBeLessThanOrEqual(1);
      }),
      { numRuns: randomCases(400) },
    );
  });
});
