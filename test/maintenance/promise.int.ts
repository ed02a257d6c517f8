import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createExportHarness, type ExportHarness } from '../export/export_harness.ts';
import { createHours } from '../export/rerun.ts';
import { randomCases } from '../setup/effort.ts';
import { createMaintenanceHarness, type MaintenanceHarness } from './maintenance_harness.ts';
import { startEvents, type Insertion, type PromisedEvents, type Swap } from './promised_events.ts';
import { startPersons, type PersonChange, type PromisedPersons } from './promised_persons.ts';

let harness: ExportHarness;
let maintenance: MaintenanceHarness;
beforeAll(async () => {
  harness = await createExportHarness();
  maintenance = createMaintenanceHarness(harness);
});
afterAll(() => harness.close());

const nextHour = createHours();
/** Three hours that no other case uses, in their order. */
const nextHours = () => [nextHour(), nextHour(), nextHour()].toReversed();

/** A step, with a label for counterexamples. */
type Step<Export> = readonly [label: string, run: (of: Export) => Promise<unknown>];
const stepsOf =
  <Export>() =>
  <Value>(
    name: string,
    values: fc.Arbitrary<Value>,
    run: (of: Export, value: Value) => Promise<unknown>,
  ): fc.Arbitrary<Step<Export>> =>
    values.map((value) => [`${name} ${JSON.stringify(value)}`, (of: Export) => run(of, value)]);

/** Takes steps, and checks the promise after each. */
async function take<Export extends { check: () => Promise<unknown> }>(
  of: Export,
  steps: readonly Step<Export>[],
  first: unknown,
): Promise<void> {
  const taken: string[] = [];
  try {
    for (const [label, run] of steps) {
      taken.push(label);
      await run(of);
      await of.check();
    }
  } catch (error) {
    throw new Error(`After ${JSON.stringify(first)}, ${taken.join(', ')}`, { cause: error });
  }
}

/** Mostly the first hour, so that steps meet. */
const hourArb = fc.constantFrom(0, 0, 0, 0, 1, 2);
/** Ranges of a few rows, and no ranges. */
const rangeRowsArb = fc.constantFrom(2, 1_000);
/** Few requests allow to shrink, because little is promised after one. */
const allowShrinkArb = fc.constantFrom(false, false, true);

const insertionArb: fc.Arbitrary<Insertion> = fc.record({
  hour: hourArb,
  rows: fc.integer({ min: 1, max: 4 }),
  // Few buckets, so that late and deleted rows meet.
  second: fc.constantFrom(0, 10, 60),
  twice: fc.boolean(),
  spread: fc.boolean(),
});
const swapArb: fc.Arbitrary<Swap> = fc.record({
  hour: hourArb,
  choice: fc.nat({ max: 5 }),
  deleted: fc.integer({ min: 1, max: 3 }),
  late: fc.nat({ max: 2 }),
});
const sameHour = (swap: Swap | null, hour: number): Swap | null => swap && { ...swap, hour };

const eventsStep = stepsOf<PromisedEvents>();
/** Leaves an hour with fewer rows of one instant, of which one is late: only their keys show it. */
const hideLateRow = async (of: PromisedEvents): Promise<void> => {
  await of.insert({ hour: 1, rows: 3, second: 0, twice: false, spread: false });
  await of.run(1, false);
  await of.swap({ hour: 1, choice: 0, deleted: 2, late: 1 });
  await of.compare();
};
const eventsStepArb = fc.oneof(
  eventsStep('insert', insertionArb, (of, insertion) => of.insert(insertion)),
  eventsStep('insert uncommitted', insertionArb, (of, insertion) => of.insertUncommitted(insertion)),
  eventsStep('commit', fc.constant(null), (of) => of.commit()),
  eventsStep('swap', swapArb, (of, swap) => of.swap(swap)),
  eventsStep('swap and run', swapArb, async (of, swap) => {
    await of.swap(swap);
    await of.run(swap.hour, false);
  }),
  eventsStep('swap and compare', swapArb, async (of, swap) => {
    await of.swap(swap);
    await of.compare();
  }),
  eventsStep('run during a swap', fc.tuple(hourArb, fc.option(swapArb)), (of, [hour, swap]) =>
    of.run(hour, false, sameHour(swap, hour)),
  ),
  eventsStep('run and allow shrinking', hourArb, (of, hour) => of.run(hour, true)),
  eventsStep('backfill', allowShrinkArb, (of, allowShrink) => of.backfill(allowShrink)),
  eventsStep('compare', fc.constant(null), (of) => of.compare()),
  eventsStep('clean up', fc.constant(null), (of) => of.cleanUp()),
);

const changeArb: fc.Arbitrary<PersonChange> = fc.record({
  choice: fc.nat({ max: 8 }),
  kind: fc.constantFrom('update', 'update', 'mark as deleted', 'delete', 'delete a distinct id', 'merge'),
  // Within a bucket, and to the next hours.
  seconds: fc.constantFrom(1, 100, 3_600, 7_200),
});

const personsStep = stepsOf<PromisedPersons>();
/** Leaves an hour whose generation before the last has the only exported state of a person that has moved. */
const leaveEarlierFiles = async (of: PromisedPersons): Promise<void> => {
  await of.change({ choice: 0, kind: 'update', seconds: 7_200 });
  await of.run(0, false);
  await of.insert(1, 1, 10);
  await of.run(0, false);
};
const personsStepArb = fc.oneof(
  personsStep(
    'insert',
    fc.tuple(fc.integer({ min: 1, max: 3 }), fc.constantFrom(1, 2)),
    (of, [persons, ids]) => of.insert(persons, ids, 10),
  ),
  personsStep('change', changeArb, (of, change) => of.change(change)),
  personsStep('change and run', fc.tuple(changeArb, hourArb), async (of, [change, hour]) => {
    await of.change(change);
    await of.run(hour, false);
  }),
  personsStep('run during a change', fc.tuple(hourArb, fc.option(changeArb)), (of, [hour, change]) =>
    of.run(hour, false, change),
  ),
  personsStep('run and allow shrinking', hourArb, (of, hour) => of.run(hour, true)),
  personsStep('backfill', allowShrinkArb, (of, allowShrink) => of.backfill(allowShrink)),
  personsStep('clean up', fc.constant(null), (of) => of.cleanUp()),
);

describe('whatever happens to events', () => {
  it.each([
    ['compared by key', true, 2],
    ['without keys in the files', false, 1],
  ])(
    'no exported row leaves the bucket unless allowed, and every late row arrives or is reported: %s',
    async (_, hasKeys, cases) => {
      await fc.assert(
        fc.asyncProperty(
          rangeRowsArb,
          insertionArb,
          fc.array(eventsStepArb, { minLength: 8, maxLength: 14 }),
          async (rangeRows, first, steps) => {
            const events = await startEvents(harness, maintenance, nextHours(), { rangeRows, hasKeys });
            const hidden: Step<PromisedEvents> = ['hide a late row', hideLateRow];
            const last: Step<PromisedEvents> = ['compare at the end', (of) => of.compare()];
            try {
              await events.insert({ ...first, hour: 0 });
              await events.run(0, false);
              await take(events, [hidden, ...steps, last], [rangeRows, first]);
            } finally {
              await events.close();
            }
          },
        ),
        { numRuns: randomCases(cases), endOnFailure: true },
      );
      expect.hasAssertions();
    },
  );
});

describe('whatever happens to persons', () => {
  it('their newest exported states stay in the bucket unless allowed', async () => {
    await fc.assert(
      fc.asyncProperty(
        rangeRowsArb,
        fc.array(personsStepArb, { minLength: 8, maxLength: 14 }),
        async (rangeRows, steps) => {
          const persons = await startPersons(harness, maintenance, nextHours(), { rangeRows });
          await persons.insert(3, 2, 0);
          await persons.backfill(false);
          const earlier: Step<PromisedPersons> = ['leave earlier files', leaveEarlierFiles];
          await take(persons, [earlier, ...steps], rangeRows);
        },
      ),
      { numRuns: randomCases(2), endOnFailure: true },
    );
    expect.hasAssertions();
  });
});
