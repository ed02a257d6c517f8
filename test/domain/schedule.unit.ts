import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  batchExportDecider,
  decideCreate,
  decidePause,
  decideUnpause,
  decideUpdate,
  type BatchExportDefinition,
  type BatchExportEvent,
  type BatchExportState,
} from '../../src/domain/batch_export.ts';
import { intervalContaining, intervalsTouching, type DataInterval } from '../../src/domain/intervals.ts';
import { decideNextInterval } from '../../src/domain/next_interval.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const created = new Date('2026-03-27T10:20:00Z');

const definition: BatchExportDefinition = {
  name: 'Events',
  model: 'events',
  destination_type: 'S3',
  config_version: 1,
  interval: 'hour',
  timezone: 'Europe/Berlin',
  offset_hour: 0,
  offset_day: 0,
  start_at: null,
  end_at: null,
  dialect_query: null,
};

/** An export whose clock is moved by hand, and all that was decided for it. */
function openSchedule() {
  let now = created;
  let state: BatchExportState = batchExportDecider.initialState;
  const decided: DataInterval[] = [];
  const take = (events: readonly BatchExportEvent[]): void => {
    for (const event of events) {
      state = batchExportDecider.evolve(state, { ...event, recorded_at: now.toISOString() });
      if (event.type === 'IntervalScheduled' || event.type === 'IntervalsSkipped')
        decided.push({ start: event.data.start, end: event.data.end });
    }
    if (decided.length > 10_000) throw new Error('The schedule decides the same again and again.');
  };
  /** Opens at most so many runs; what is skipped takes no slot. */
  const open = (slots: number): void => {
    for (let opened = 0; ;) {
      const { events } = decideNextInterval(state, {
        now,
        jitterMs: () => 0,
        slotFree: opened < slots,
        runIdOf: ({ start }) => start,
      });
      if (events.length === 0) return;
      if (events[0]?.type === 'IntervalScheduled') opened += 1;
      take(events);
    }
  };
  const live = () => {
    if (state.status !== 'live') throw new Error('The export is not live.');
    return state;
  };
  take(decideCreate(state, { team_id: 1, definition, paused: false, now }));
  const first = live().scheduled_until;
  return {
    decided,
    open,
    first,
    now: () => now,
    pieces: () => live().pieces,
    pass: (milliseconds: number) => {
      now = new Date(now.getTime() + milliseconds);
    },
    pause: () => {
      take(decidePause(state, { last_paused_at: null }));
    },
    unpause: (backfill: boolean) => {
      take(decideUnpause(state, { now, backfill_id: backfill ? 'backfill' : null }));
    },
    update: (changes: Partial<BatchExportDefinition>) => {
      take(decideUpdate(state, { changes, now }));
    },
  };
}

type Schedule = ReturnType<typeof openSchedule>;
/** One thing that happens to an export. */
interface Happening {
  readonly words: string;
  readonly run: (schedule: Schedule) => void;
}

const happening: fc.Arbitrary<Happening> = fc.oneof(
  fc.integer({ min: 1, max: 8 * 60 }).map((minutes) => ({
    words: `${minutes} minutes pass`,
    run: (schedule: Schedule) => {
      schedule.pass(minutes * minuteMs);
    },
  })),
  fc.integer({ min: 0, max: 5 }).map((slots) => ({
    words: `${slots} runs are opened`,
    run: (schedule: Schedule) => {
      schedule.open(slots);
    },
  })),
  fc.constant({
    words: 'pause',
    run: (schedule: Schedule) => {
      schedule.pause();
    },
  }),
  fc.boolean().map((backfill) => ({
    words: `unpause ${backfill ? 'with' : 'without'} backfill`,
    run: (schedule: Schedule) => {
      schedule.unpause(backfill);
    },
  })),
  fc
    .record(
      {
        interval: fc.constantFrom('hour', 'day', 'week', 'every 30 minutes'),
        timezone: fc.constantFrom('UTC', 'Europe/Berlin', 'Asia/Kathmandu'),
        offset_hour: fc.integer({ min: 0, max: 23 }),
        offset_day: fc.integer({ min: 0, max: 6 }),
        start_at: fc.integer({ min: -50, max: 200 }).map(hoursAfterCreation),
        end_at: fc.integer({ min: -50, max: 200 }).map(hoursAfterCreation),
      },
      { requiredKeys: [] },
    )
    .map((changes) => ({
      words: `update to ${JSON.stringify(changes)}`,
      run: (schedule: Schedule) => {
        schedule.update(changes);
      },
    })),
);

function hoursAfterCreation(hours: number): string {
  return new Date(created.getTime() + hours * hourMs).toISOString();
}

const histories = fc.array(
  happening.map((one) => Object.assign(one, { [fc.toStringMethod]: () => one.words })),
  { maxLength: 15 },
);

describe('a schedule, whatever happens to it', () => {
  it('has each instant since its creation in exactly one run or skipped range', () => {
    fc.assert(
      fc.property(histories, (happenings) => {
        const schedule = openSchedule();
        for (const { run } of happenings) run(schedule);
        schedule.unpause(false);
        schedule.pass(hourMs);
        schedule.open(Number.POSITIVE_INFINITY);
        const inOrder = schedule.decided.toSorted((one, other) => (one.start < other.start ? -1 : 1));
        let until = schedule.first;
        for (const { start, end } of inOrder) {
          expect(start).toBe(until);
          expect(start < end).toBe(true);
          until = end;
        }
        expect(until).toBe(intervalContaining(schedule.pieces(), schedule.now()).start);
      }),
      { numRuns: 100 },
    );
  });

  it('never moves the boundaries of an interval that has ended, since a backfill may have exported it', () => {
    fc.assert(
      fc.property(histories, (happenings) => {
        const schedule = openSchedule();
        const ended = new Map<string, DataInterval>();
        const note = (): void => {
          const first = new Date(schedule.first);
          for (const interval of intervalsTouching(schedule.pieces(), first, schedule.now(), schedule.now()))
            ended.set(`${interval.start}/${interval.end}`, interval);
        };
        for (const { run } of happenings) {
          run(schedule);
          note();
        }
        for (const interval of ended.values())
          expect(intervalContaining(schedule.pieces(), new Date(interval.start))).toEqual(interval);
      }),
      { numRuns: 100 },
    );
  });
});
