import {
  backfillDecider,
  type BackfillEvent,
  type BackfillState,
  decideCompletion,
  requireBackfillRange,
} from '../../src/domain/backfill.ts';
import {
  batchExportDecider,
  type BatchExportDefinition,
  type BatchExportEvent,
  type BatchExportState,
  decideCreate,
  decidePause,
  decideUnpause,
  decideUpdate,
} from '../../src/domain/batch_export.ts';
import {
  type DataInterval,
  intervalContaining,
  intervalFrom,
  nominalLengthMs,
} from '../../src/domain/intervals.ts';
import { definitionOf } from './definition.ts';
import { decideNextInterval } from '../../src/domain/next_interval.ts';

/** The definition that tests start from. */
export const defaultDefinition = definitionOf();

const concurrency = 3;
const maxIntervals = 20_000;

/** A backfill with its range and the intervals it created runs for. */
interface SimulatedBackfill {
  state: BackfillState;
  readonly intervals: DataInterval[];
  readonly range: DataInterval & { readonly intervals: number };
}

/** Simulates the schedule of an export with a controlled clock, using only the pure deciders. */
export function createSchedule(created: Date, definition: BatchExportDefinition): Schedule {
  const state = batchExportDecider.initialState;
  const command = { team_id: 1, definition, paused: false, now: created };
  const [event] = decideCreate(state, command);
  if (!event) throw new Error('Creating an export returned no event.');
  return scheduleAt(
    created,
    batchExportDecider.evolve(state, { ...event, recorded_at: created.toISOString() }),
    [],
  );
}

function scheduleAt(start: Date, initial: BatchExportState, alreadyScheduled: readonly DataInterval[]) {
  let now = start;
  let state = initial;
  let active: string[] = [];
  const scheduled = [...alreadyScheduled];
  const skipped: DataInterval[] = [];
  const backfills: SimulatedBackfill[] = [];

  const live = () => {
    if (state.status !== 'live') throw new Error('The export is not live.');
    return state;
  };
  const apply = (events: readonly BatchExportEvent[]): void => {
    for (const event of events) {
      state = batchExportDecider.evolve(state, { ...event, recorded_at: now.toISOString() });
      if (event.type === 'IntervalScheduled')
        scheduled.push({ start: event.data.start, end: event.data.end });
      if (event.type === 'IntervalsSkipped') skipped.push({ start: event.data.start, end: event.data.end });
      if (event.type === 'BackfillRequested') startBackfill(event.data);
    }
    if (scheduled.length + skipped.length > maxIntervals)
      throw new Error('The schedule repeats the same decision.');
  };

  const applyToBackfill = (backfill: SimulatedBackfill, events: readonly BackfillEvent[]): void => {
    for (const event of events)
      backfill.state = backfillDecider.evolve(backfill.state, { ...event, recorded_at: now.toISOString() });
  };
  function startBackfill(request: { readonly start_at: string; readonly end_at: string }): void {
    const range = requireBackfillRange(live(), { ...request, now, maxIntervals: maxIntervals });
    const backfill: SimulatedBackfill = { state: backfillDecider.initialState, intervals: [], range };
    const spec = {
      batch_export_id: 'export',
      team_id: 1,
      ...request,
      allow_shrink: false,
      plan: { kind: 'range', range, revisions: live().revisions } as const,
    };
    applyToBackfill(backfill, [{ type: 'BackfillStarted', data: spec }]);
    backfills.push(backfill);
  }
  /** Creates a backfill's next run and completes it; false if there is none left. */
  const stepBackfill = (backfill: SimulatedBackfill): boolean => {
    const { state: before } = backfill;
    if (before.status !== 'Running' || before.spec.plan.kind !== 'range' || !before.remaining) {
      applyToBackfill(backfill, decideCompletion(backfill.state, false));
      return false;
    }
    const interval = intervalFrom(before.spec.plan.revisions, new Date(before.remaining.start));
    backfill.intervals.push(interval);
    const data = { run_id: interval.start, own: true, ...interval };
    applyToBackfill(backfill, [
      { type: 'BackfillRunCreated', data },
      { type: 'BackfillRunEnded', data: { run_id: interval.start, status: 'Completed' } },
    ]);
    return true;
  };

  const decision = () =>
    decideNextInterval(state, {
      now,
      jitterMs: () => 0,
      hasFreeSlot: active.length < concurrency,
      runIdOf: ({ start }) => start,
    });
  /** Decides about due intervals, within the free slots. */
  const step = (): void => {
    for (;;) {
      const { events } = decision();
      const [event] = events;
      if (!event) return;
      if (event.type === 'IntervalScheduled') {
        if (active.length >= concurrency) throw new Error('More runs are active than there are slots.');
        active.push(event.data.run_id);
      }
      apply(events);
    }
  };

  return {
    /** Intervals with a run, and skipped ranges, in the order of the decisions. */
    scheduled,
    skipped,
    backfills,
    first: live().scheduled_until,
    now: () => now,
    live,
    decision,
    step,
    stepBackfill,
    /** Advances the clock by a number of interval lengths. */
    pass: (lengths: number) => {
      now = new Date(now.getTime() + Math.floor(lengths * nominalLengthMs(live().definition.interval)));
    },
    passTo: (time: Date) => {
      now = time;
    },
    /** Advances the clock to the end of the current interval. */
    passToBoundary: () => {
      now = new Date(intervalContaining(live().revisions, now).end);
    },
    /** ISO 8601 time a number of interval lengths before now. */
    ago: (lengths: number) =>
      new Date(
        now.getTime() - Math.floor(lengths * nominalLengthMs(live().definition.interval)),
      ).toISOString(),
    endRuns: (count: number) => {
      active = active.slice(count);
    },
    /** Ends all runs and decides again until nothing is due. */
    catchUp: () => {
      for (let decided = -1; decided !== scheduled.length;) {
        decided = scheduled.length;
        active = [];
        step();
      }
    },
    pause: () => {
      apply(decidePause(state, { last_paused_at: null }));
    },
    unpause: (backfill: boolean) => {
      apply(decideUnpause(state, { now, backfill_id: backfill ? 'backfill' : null }));
    },
    update: (changes: Partial<BatchExportDefinition>) => {
      apply(decideUpdate(state, { changes, now }));
    },
    backfill: startBackfill,
  };
}

export type Schedule = ReturnType<typeof scheduleAt>;

/** Returns an independent copy. */
export const copyOf = (schedule: Schedule): Schedule =>
  scheduleAt(schedule.now(), schedule.live(), schedule.scheduled);
