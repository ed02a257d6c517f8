import fc from 'fast-check';
import { CommandRejected } from '../../src/domain/errors.ts';
import { type BatchExportDefinition, supportsOffsets } from '../../src/domain/batch_export.ts';
import { createSchedule, defaultDefinition, type Schedule } from './scheduled_export.ts';
import { anyInstant, anyTimeZone } from './zones.ts';

/** An action on a simulated schedule. */
interface ScheduleAction {
  readonly label: string;
  readonly run: (schedule: Schedule) => void;
}

const interval = fc.constantFrom(
  'hour',
  'day',
  'week',
  'month',
  'every 1 minutes',
  'every 5 minutes',
  'every 20 minutes',
  'every 60 minutes',
);

/** An interval with valid offsets. */
const scheduleFields: fc.Arbitrary<Pick<BatchExportDefinition, 'interval' | 'offset_hour' | 'offset_day'>> =
  fc
    .tuple(interval, fc.integer({ min: 0, max: 23 }), fc.integer({ min: 0, max: 27 }))
    .map(([name, hour, day]) => ({
      interval: name,
      offset_hour: supportsOffsets(name) ? hour : 0,
      offset_day: name === 'week' ? day % 7 : name === 'month' ? day : 0,
    }));

/** Days relative to the export's clock; null removes the bound. */
const daysAway = fc.option(fc.double({ min: -40, max: 60, noNaN: true }));
const dayMs = 24 * 60 * 60_000;
const boundAt = (schedule: Schedule, days: number | null): string | null =>
  days === null ? null : new Date(schedule.now().getTime() + Math.floor(days * dayMs)).toISOString();

const lengths = fc.oneof(
  { weight: 3, arbitrary: fc.double({ min: 0, max: 3, noNaN: true }) },
  { weight: 1, arbitrary: fc.double({ min: 0, max: 40, noNaN: true }) },
);

/** Applies a command. A rejected command changes nothing. */
function unlessRejected(schedule: Schedule, command: (schedule: Schedule) => void): void {
  try {
    command(schedule);
  } catch (error) {
    if (!(error instanceof CommandRejected)) throw error;
  }
}

const action: fc.Arbitrary<ScheduleAction> = fc.oneof(
  lengths.map((count) => ({
    label: `${count} interval lengths pass`,
    run: (one: Schedule) => one.pass(count),
  })),
  fc.constant({ label: 'time passes to the next boundary', run: (one: Schedule) => one.passToBoundary() }),
  fc.constant({ label: 'the schedule takes a step', run: (one: Schedule) => one.step() }),
  fc.integer({ min: 1, max: 3 }).map((count) => ({
    label: `${count} runs end`,
    run: (one: Schedule) => {
      one.endRuns(count);
      one.step();
    },
  })),
  fc.constant({ label: 'pause', run: (one: Schedule) => one.pause() }),
  fc.boolean().map((backfill) => ({
    label: `unpause ${backfill ? 'with' : 'without'} backfill`,
    run: (one: Schedule) => unlessRejected(one, () => one.unpause(backfill)),
  })),
  scheduleFields.map((changes) => ({
    label: `update to ${JSON.stringify(changes)}`,
    run: (one: Schedule) => unlessRejected(one, () => one.update(changes)),
  })),
  anyTimeZone.map((timezone) => ({
    label: `update to ${timezone}`,
    run: (one: Schedule) => one.update({ timezone }),
  })),
  fc.tuple(daysAway, daysAway).map(([start, end]) => ({
    label: `bounds ${String(start)} and ${String(end)} days away`,
    run: (one: Schedule) =>
      unlessRejected(one, () => one.update({ start_at: boundAt(one, start), end_at: boundAt(one, end) })),
  })),
  fc.tuple(lengths, lengths).map(([before, long]) => ({
    label: `backfill of ${long} lengths, ${before} lengths ago`,
    run: (one: Schedule) =>
      unlessRejected(one, () => one.backfill({ start_at: one.ago(before + long), end_at: one.ago(before) })),
  })),
  fc.constant({
    label: 'backfills take a step',
    run: (one: Schedule) => {
      for (const backfill of one.backfills) one.stepBackfill(backfill);
    },
  }),
);

/** A schedule with any definition, created at any time, and a sequence of actions on it. */
export const scheduleArb: fc.Arbitrary<{
  readonly createSchedule: () => Schedule;
  readonly actions: readonly ScheduleAction[];
}> = fc.record({
  createSchedule: fc.tuple(anyInstant, scheduleFields, anyTimeZone).map(([created, fields, timezone]) =>
    Object.assign(() => createSchedule(created, { ...defaultDefinition, ...fields, timezone }), {
      [fc.toStringMethod]: () => `${created.toISOString()} ${JSON.stringify(fields)} ${timezone}`,
    }),
  ),
  actions: fc.array(
    action.map((one) => Object.assign(one, { [fc.toStringMethod]: () => one.label })),
    { maxLength: 20 },
  ),
});
