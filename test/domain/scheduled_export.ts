import {
  backfillDecider,
  decideCompletion,
  nextBackfillInterval,
  type BackfillEvent,
  type BackfillState,
} from '../../src/domain/backfill.ts';
import { requireBackfillRange } from '../../src/domain/backfill_request.ts';
import {
  batchExportDecider,
  decideCreate,
  decidePause,
  decideUnpause,
  type BatchExportDefinition,
  type BatchExportEvent,
  type BatchExportState,
} from '../../src/domain/batch_export.ts';
import { decideUpdate } from '../../src/domain/batch_export_update.ts';
import { intervalContaining, nominalLengthMs, type DataInterval } from '../../src/domain/intervals.ts';
import { decideNextInterval } from '../../src/domain/next_interval.ts';

/** A definition that nothing was changed in. */
export const plainDefinition: BatchExportDefinition = {
  name: 'Events',
  model: 'events',
  destination_type: 'S3',
  config_version: 1,
  interval: 'hour',
  timezone: 'UTC',
  offset_hour: 0,
  offset_day: 0,
  start_at: null,
  end_at: null,
  dialect_query: null,
};

const concurrency = 3;
const mostIntervals = 20_000;

/** A backfill under way: what it covers and which runs it opened. */
interface OpenBackfill {
  state: BackfillState;
  readonly opened: DataInterval[];
  readonly range: DataInterval & { readonly intervals: number };
}

/** An export whose clock is moved by hand, and all that was decided for it. Nothing but the pure deciders. */
export function openSchedule(created: Date, definition: BatchExportDefinition): Schedule {
  const state = batchExportDecider.initialState;
  const command = { team_id: 1, definition, paused: false, now: created };
  const [event] = decideCreate(state, command);
  if (!event) throw new Error('Creating an export is no event.');
  return scheduleAt(
    created,
    batchExportDecider.evolve(state, { ...event, recorded_at: created.toISOString() }),
    [],
  );
}

function scheduleAt(start: Date, initial: BatchExportState, formerly: readonly DataInterval[]) {
  let now = start;
  let state = initial;
  let active: string[] = [];
  const scheduled = [...formerly];
  const skipped: DataInterval[] = [];
  const backfills: OpenBackfill[] = [];

  const live = () => {
    if (state.status !== 'live') throw new Error('The export is not live.');
    return state;
  };
  const take = (events: readonly BatchExportEvent[]): void => {
    for (const event of events) {
      state = batchExportDecider.evolve(state, { ...event, recorded_at: now.toISOString() });
      if (event.type === 'IntervalScheduled')
        scheduled.push({ start: event.data.start, end: event.data.end });
      if (event.type === 'IntervalsSkipped') skipped.push({ start: event.data.start, end: event.data.end });
      if (event.type === 'BackfillRequested') startBackfill(event.data);
    }
    if (scheduled.length + skipped.length > mostIntervals)
      throw new Error('The schedule decides the same again and again.');
  };

  const takeBackfill = (backfill: OpenBackfill, events: readonly BackfillEvent[]): void => {
    for (const event of events)
      backfill.state = backfillDecider.evolve(backfill.state, { ...event, recorded_at: now.toISOString() });
  };
  function startBackfill(request: { readonly start_at: string; readonly end_at: string }): void {
    const range = requireBackfillRange(live(), { ...request, now, maxIntervals: mostIntervals });
    const backfill: OpenBackfill = { state: backfillDecider.initialState, opened: [], range };
    const spec = {
      batch_export_id: 'export',
      team_id: 1,
      ...request,
      first_start: range.start,
      last_end: range.end,
      total_runs: range.intervals,
      revisions: live().revisions,
      retry_of_run_id: null,
    };
    takeBackfill(backfill, [{ type: 'BackfillStarted', data: spec }]);
    backfills.push(backfill);
  }
  /** Opens a backfill's next run and lets it end; false when it has none left. */
  const stepBackfill = (backfill: OpenBackfill): boolean => {
    const interval = nextBackfillInterval(backfill.state);
    if (!interval) {
      takeBackfill(backfill, decideCompletion(backfill.state));
      return false;
    }
    backfill.opened.push(interval);
    const data = { run_id: interval.start, own: true, ...interval };
    takeBackfill(backfill, [
      { type: 'BackfillRunCreated', data },
      { type: 'BackfillRunEnded', data: { run_id: interval.start, status: 'Completed' } },
    ]);
    return true;
  };

  /** Decides what is due, as far as runs are free. */
  const step = (): void => {
    for (;;) {
      const { events } = decideNextInterval(state, {
        now,
        jitterMs: () => 0,
        hasFreeSlot: active.length < concurrency,
        runIdOf: ({ start }) => start,
      });
      const [event] = events;
      if (!event) return;
      if (event.type === 'IntervalScheduled') {
        if (active.length >= concurrency) throw new Error('More runs are active than there are slots.');
        active.push(event.data.run_id);
      }
      take(events);
    }
  };

  return {
    /** Intervals with a run, and skipped ranges, each in the order of the decisions. */
    scheduled,
    skipped,
    backfills,
    first: live().scheduled_until,
    now: () => now,
    live,
    step,
    stepBackfill,
    /** So many lengths of the interval go by. */
    pass: (lengths: number) => {
      now = new Date(now.getTime() + Math.floor(lengths * nominalLengthMs(live().definition.interval)));
    },
    passTo: (time: Date) => {
      now = time;
    },
    /** The clock comes to stand exactly at the end of the interval that contains it. */
    passToBoundary: () => {
      now = new Date(intervalContaining(live().revisions, now).end);
    },
    /** ISO 8601 time so many lengths of the interval before now. */
    ago: (lengths: number) =>
      new Date(
        now.getTime() - Math.floor(lengths * nominalLengthMs(live().definition.interval)),
      ).toISOString(),
    endRuns: (count: number) => {
      active = active.slice(count);
    },
    /** Downtime is over: every run ends, until nothing is due any more. */
    catchUp: () => {
      for (let decided = -1; decided !== scheduled.length;) {
        decided = scheduled.length;
        active = [];
        step();
      }
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
    backfill: startBackfill,
  };
}

export type Schedule = ReturnType<typeof scheduleAt>;

/** One like it, to which other things can happen. */
export const copyOf = (schedule: Schedule): Schedule =>
  scheduleAt(schedule.now(), schedule.live(), schedule.scheduled);
