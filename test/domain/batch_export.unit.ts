import fc from 'fast-check';
import { describe, expect, it } from '@jest/globals';
import { decideBackfill, decideRetry } from '../../src/domain/backfill.ts';
import {
  batchExportDecider,
  type BatchExportDefinition,
  type BatchExportEvent,
  type BatchExportState,
  decideCreate,
  decideDelete,
  decidePause,
  decideUnpause,
  decideUpdate,
  dueRanges,
  undecidedRanges,
} from '../../src/domain/batch_export.ts';
import { countIntervals, type DataInterval, intervalContaining } from '../../src/domain/intervals.ts';
import { randomCases } from '../setup/effort.ts';
import { given } from './decider_specification.ts';
import { definitionOf } from './definition.ts';
import { listIntervals } from './list_intervals.ts';
import { scheduleArb } from './schedule_actions.ts';
import { copyOf, createSchedule, defaultDefinition, type Schedule } from './scheduled_export.ts';
import { expirationOf, isExpired } from '../../src/domain/expiration.ts';
import { decideNextInterval } from '../../src/domain/next_interval.ts';

describe('a batch export', () => {
  const definition = definitionOf({ name: 'Hourly events' });
  const at = (time: string) => new Date(`2026-11-01T${time}Z`);
  const iso = (time: string) => at(time).toISOString();
  const created: BatchExportEvent = {
    type: 'BatchExportCreated',
    data: { team_id: 1, definition, scheduled_until: iso('10:00:00'), paused: false },
  };
  const paused = (time: string) => ({
    type: 'BatchExportPaused' as const,
    data: { last_paused_at: null },
    recorded_at: iso(time),
  });
  const scheduled = (start: string, end: string): BatchExportEvent => ({
    type: 'IntervalScheduled',
    data: { run_id: `run of ${iso(start)}`, start: iso(start), end: iso(end) },
  });
  const next =
    (now: string, hasFreeSlot = true) =>
    (state: BatchExportState) =>
      decideNextInterval(state, {
        now: at(now),
        jitterMs: () => 0,
        hasFreeSlot: hasFreeSlot,
        runIdOf: (interval) => `run of ${interval.start}`,
      });
  const nextEvents =
    (now: string, hasFreeSlot = true) =>
    (state: BatchExportState) =>
      next(now, hasFreeSlot)(state).events;

  it('starts its schedule with the interval that contains its creation', () => {
    given(batchExportDecider, [])
      .when((state) => decideCreate(state, { team_id: 1, definition, paused: false, now: at('10:20:00') }))
      .then([created]);
  });

  it('is not created twice', () => {
    given(batchExportDecider, [created])
      .when((state) => decideCreate(state, { team_id: 1, definition, paused: false, now: at('10:20:00') }))
      .thenRejected('conflict');
  });

  it('schedules an interval once it has ended and no earlier', () => {
    const live = given(batchExportDecider, [created]);
    live.when(nextEvents('10:59:59')).then([]);
    live.when(nextEvents('11:00:00')).then([scheduled('10:00:00', '11:00:00')]);
    expect(next('10:59:59')(live.state).wake_at).toEqual(at('11:00:00'));
  });

  it('waits for a free slot', () => {
    given(batchExportDecider, [created]).when(nextEvents('15:00:00', false)).then([]);
  });

  it('catches up oldest first', () => {
    given(batchExportDecider, [created, scheduled('10:00:00', '11:00:00')])
      .when(nextEvents('15:00:00'))
      .then([scheduled('11:00:00', '12:00:00')]);
  });

  it('schedules nothing while paused', () => {
    given(batchExportDecider, [created, paused('10:30:00')])
      .when(nextEvents('15:00:00'))
      .then([]);
  });

  it('treats a second pause as a no-op', () => {
    given(batchExportDecider, [created, paused('10:30:00')])
      .when((state) => decidePause(state, { last_paused_at: null }))
      .then([]);
  });

  it('continues with the interval that contains now, and records the skipped ones', () => {
    const unpaused: BatchExportEvent[] = [
      { type: 'BatchExportUnpaused', data: {} },
      {
        type: 'IntervalsSkipped',
        data: { start: iso('12:00:00'), end: iso('14:00:00'), reason: 'paused' },
      },
    ];
    // Paused at 12:10 with 10:00–11:00 and 11:00–12:00 not started: both stay due.
    const before = given(batchExportDecider, [created, paused('12:10:00')]);
    before.when((state) => decideUnpause(state, { now: at('14:30:00'), backfill_id: null })).then(unpaused);

    const after = [created, paused('12:10:00'), ...unpaused];
    given(batchExportDecider, after)
      .when(nextEvents('15:00:00'))
      .then([scheduled('10:00:00', '11:00:00')]);
    given(batchExportDecider, [
      ...after,
      scheduled('10:00:00', '11:00:00'),
      scheduled('11:00:00', '12:00:00'),
    ])
      .when(nextEvents('15:00:00'))
      .then([scheduled('14:00:00', '15:00:00')]);
  });

  it('skips nothing when it is unpaused within the same interval', () => {
    given(batchExportDecider, [created, paused('10:30:00')])
      .when((state) => decideUnpause(state, { now: at('10:40:00'), backfill_id: 'b' }))
      .then([{ type: 'BatchExportUnpaused', data: {} }]);
  });

  it('backfills the missed intervals on request', () => {
    given(batchExportDecider, [created, paused('10:30:00')])
      .when((state) => decideUnpause(state, { now: at('12:10:00'), backfill_id: 'b' }))
      .then([
        { type: 'BatchExportUnpaused', data: {} },
        {
          type: 'IntervalsSkipped',
          data: { start: iso('10:00:00'), end: iso('12:00:00'), reason: 'paused' },
        },
        {
          type: 'BackfillRequested',
          data: {
            backfill_id: 'b',
            start_at: iso('10:00:00'),
            end_at: iso('12:00:00'),
            allow_shrink: false,
          },
        },
      ]);
  });

  it('includes an interval that ends at start_at or end_at, and skips those before', () => {
    const bounded = (fields: Partial<BatchExportDefinition>): BatchExportEvent => ({
      ...created,
      data: { ...created.data, definition: { ...definition, ...fields } },
    });
    const skipped: BatchExportEvent = {
      type: 'IntervalsSkipped',
      data: { start: iso('10:00:00'), end: iso('11:00:00'), reason: 'before start_at' },
    };
    const expectNext = (fields: Partial<BatchExportDefinition>, now: string, events: BatchExportEvent[]) => {
      given(batchExportDecider, [bounded(fields)])
        .when(nextEvents(now))
        .then(events);
    };
    const first = scheduled('10:00:00', '11:00:00');
    expectNext({ start_at: iso('11:00:00') }, '11:00:00', [first]);
    expectNext({ start_at: iso('11:00:01') }, '11:59:59', []);
    expectNext({ start_at: iso('11:00:01') }, '12:00:00', [skipped]);
    expectNext({ end_at: iso('11:00:00') }, '11:00:00', [first]);
    expectNext({ end_at: iso('10:59:59') }, '15:00:00', []);
  });

  it('bridges a change of interval from the first boundary without a run', () => {
    const update = given(batchExportDecider, [created]);
    const changed: BatchExportEvent = {
      type: 'BatchExportUpdated',
      data: { changes: { interval: 'day' }, schedule_effective_from: iso('10:00:00') },
    };
    update
      .when((state) => decideUpdate(state, { changes: { interval: 'day' }, now: at('10:30:00') }))
      .then([changed]);
    given(batchExportDecider, [created, changed])
      .when(
        (state) =>
          decideNextInterval(state, {
            now: new Date('2026-11-02T00:00:00Z'),
            jitterMs: () => 0,
            hasFreeSlot: true,
            runIdOf: () => 'bridge',
          }).events,
      )
      .then([
        {
          type: 'IntervalScheduled',
          data: { run_id: 'bridge', start: iso('10:00:00'), end: '2026-11-02T00:00:00.000Z' },
        },
      ]);
  });

  it('records no event for an update that changes nothing', () => {
    given(batchExportDecider, [created])
      .when((state) => decideUpdate(state, { changes: { name: 'Hourly events' }, now: at('10:30:00') }))
      .then([]);
  });

  it('rejects a backfill that is empty or ends in the future', () => {
    const live = given(batchExportDecider, [created]);
    const request = (start: string, end: string) => (state: BatchExportState) =>
      decideBackfill(state, {
        backfill_id: 'b',
        start_at: iso(start),
        end_at: iso(end),
        allow_shrink: false,
        now: at('12:00:00'),
        maxIntervals: 10,
      });
    live.when(request('11:00:00', '11:00:00')).thenRejected('invalid_input', /start_at/);
    live.when(request('11:00:00', '12:00:01')).thenRejected('invalid_input', /future/);
  });

  it('names the active run when a retry has to wait', () => {
    const interval = { start: iso('09:00:00'), end: iso('10:00:00') };
    given(batchExportDecider, [created])
      .when((state) =>
        decideRetry(state, {
          backfill_id: 'b',
          run_id: 'r',
          interval,
          active_run_id: 'the-active-run',
        }),
      )
      .thenRejected('conflict', /the-active-run/);
  });

  it('does not exist after a delete, and a second delete is a no-op', () => {
    const deleted = given(batchExportDecider, [created, { type: 'BatchExportDeleted', data: {} }]);
    deleted.when(decideDelete).then([]);
    deleted.when((state) => decidePause(state, { last_paused_at: null })).thenRejected('not_found');
    deleted.when(nextEvents('15:00:00')).then([]);
  });
});

describe('an object expires', () => {
  const written_at = '2026-01-01T10:00:00.000Z';

  it.each([
    [null, null, null],
    ['2026-02-01T00:00:00.000Z', null, '2026-02-01T00:00:00.000Z'],
    [null, 10, '2026-01-11T10:00:00.000Z'],
    ['2026-02-01T00:00:00.000Z', 10, '2026-01-11T10:00:00.000Z'],
    ['2026-01-05T00:00:00.000Z', 10, '2026-01-05T00:00:00.000Z'],
  ])('by its rule (%s) or the retention of the export (%s days): %s', (expires_at, days, time) => {
    expect(expirationOf({ expires_at, written_at }, days)?.toISOString() ?? null).toBe(time);
  });

  it('exactly when its time comes', () => {
    const at = (now: string) => isExpired({ expires_at: null, written_at }, 1, new Date(now));
    expect([at('2026-01-02T09:59:59.999Z'), at('2026-01-02T10:00:00.000Z')]).toEqual([false, true]);
  });
});

describe('a schedule after any sequence of actions', () => {
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
      { numRuns: randomCases(100) },
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
      { numRuns: randomCases(40) },
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
      { numRuns: randomCases(50) },
    );
  });

  it('reports exactly the intervals as due that it then creates runs for', () => {
    fc.assert(
      fc.property(scheduleArb, ({ createSchedule, actions }) => {
        const schedule = createSchedule();
        for (const { run } of actions) {
          run(schedule);
          const { revisions } = schedule.live();
          const due = dueRanges(undecidedRanges(schedule.live(), schedule.now()));
          const copy = copyOf(schedule);
          copy.unpause(false);
          copy.catchUp();
          const newRuns = copy.scheduled.slice(schedule.scheduled.length);
          expect(newRuns).toEqual(due.flatMap((range) => listIntervals(revisions, range)));
          expect(sum(due.map((range) => countIntervals(revisions, range)))).toBe(newRuns.length);
        }
      }),
      { numRuns: randomCases(40) },
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
      { numRuns: randomCases(40) },
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
      { numRuns: randomCases(80) },
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
      { numRuns: randomCases(100) },
    );
  });
});

describe('a schedule outside its bounds', () => {
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
