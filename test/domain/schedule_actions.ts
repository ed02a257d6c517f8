import fc from 'fast-check';
import { CommandRejected } from '../../src/domain/errors.ts';
import type { BatchExportDefinition } from '../../src/domain/batch_export.ts';
import { supportsOffsets } from '../../src/domain/definition_rules.ts';
import { openSchedule, plainDefinition, type Schedule } from './scheduled_export.ts';
import { instantOfHistory, timeZone } from './zones.ts';

/** One thing that happens to an export. */
interface Happening {
  readonly words: string;
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

/** An interval with offsets that it may have. */
const cut: fc.Arbitrary<Pick<BatchExportDefinition, 'interval' | 'offset_hour' | 'offset_day'>> = fc
  .tuple(interval, fc.integer({ min: 0, max: 23 }), fc.integer({ min: 0, max: 27 }))
  .map(([name, hour, day]) => ({
    interval: name,
    offset_hour: supportsOffsets(name) ? hour : 0,
    offset_day: name === 'week' ? day % 7 : name === 'month' ? day : 0,
  }));

/** Days from where the export's clock stands; undefined takes a bound away. */
const daysAway = fc.option(fc.double({ min: -40, max: 60, noNaN: true }));
const dayMs = 24 * 60 * 60_000;
const boundAt = (schedule: Schedule, days: number | null): string | null =>
  days === null ? null : new Date(schedule.now().getTime() + Math.floor(days * dayMs)).toISOString();

const lengths = fc.oneof(
  { weight: 3, arbitrary: fc.double({ min: 0, max: 3, noNaN: true }) },
  { weight: 1, arbitrary: fc.double({ min: 0, max: 40, noNaN: true }) },
);

/** A person asks; what is refused changes nothing. */
function ask(schedule: Schedule, command: (schedule: Schedule) => void): void {
  try {
    command(schedule);
  } catch (error) {
    if (!(error instanceof CommandRejected)) throw error;
  }
}

const happening: fc.Arbitrary<Happening> = fc.oneof(
  lengths.map((count) => ({ words: `${count} lengths pass`, run: (one: Schedule) => one.pass(count) })),
  fc.constant({ words: 'a boundary comes', run: (one: Schedule) => one.passToBoundary() }),
  fc.constant({ words: 'the schedule looks', run: (one: Schedule) => one.step() }),
  fc.integer({ min: 1, max: 3 }).map((count) => ({
    words: `${count} runs end`,
    run: (one: Schedule) => {
      one.endRuns(count);
      one.step();
    },
  })),
  fc.constant({ words: 'pause', run: (one: Schedule) => one.pause() }),
  fc.boolean().map((backfill) => ({
    words: `unpause ${backfill ? 'with' : 'without'} backfill`,
    run: (one: Schedule) => ask(one, () => one.unpause(backfill)),
  })),
  cut.map((changes) => ({
    words: `update to ${JSON.stringify(changes)}`,
    run: (one: Schedule) => ask(one, () => one.update(changes)),
  })),
  timeZone.map((timezone) => ({
    words: `update to ${timezone}`,
    run: (one: Schedule) => one.update({ timezone }),
  })),
  fc.tuple(daysAway, daysAway).map(([start, end]) => ({
    words: `bounds ${String(start)} and ${String(end)} days away`,
    run: (one: Schedule) =>
      ask(one, () => one.update({ start_at: boundAt(one, start), end_at: boundAt(one, end) })),
  })),
  fc.tuple(lengths, lengths).map(([before, long]) => ({
    words: `backfill of ${long} lengths, ${before} lengths ago`,
    run: (one: Schedule) =>
      ask(one, () => one.backfill({ start_at: one.ago(before + long), end_at: one.ago(before) })),
  })),
  fc.constant({
    words: 'backfills go on',
    run: (one: Schedule) => {
      for (const backfill of one.backfills) one.stepBackfill(backfill);
    },
  }),
);

/** An export of any definition, made at any time, to which anything happens. */
export const anySchedule: fc.Arbitrary<{
  readonly open: () => Schedule;
  readonly happenings: readonly Happening[];
}> = fc.record({
  open: fc.tuple(instantOfHistory, cut, timeZone).map(([created, members, timezone]) =>
    Object.assign(() => openSchedule(created, { ...plainDefinition, ...members, timezone }), {
      [fc.toStringMethod]: () => `${created.toISOString()} ${JSON.stringify(members)} ${timezone}`,
    }),
  ),
  happenings: fc.array(
    happening.map((one) => Object.assign(one, { [fc.toStringMethod]: () => one.words })),
    { maxLength: 20 },
  ),
});
