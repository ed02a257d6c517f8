import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Model } from '../../src/domain/batch_export.ts';
import { type IndependentReader, startDuckDb } from '../encoding/duckdb.ts';
import { createExportHarness, type ExportHarness } from '../export/export_harness.ts';
import { casesOf, randomCases } from '../setup/effort.ts';
import { type Change, lineOf, startHistory, type Step } from './source_history.ts';

let harness: ExportHarness;
let duckDb: IndependentReader;
beforeAll(async () => {
  [harness, duckDb] = [await createExportHarness(), await startDuckDb()];
});
afterAll(async () => {
  duckDb.close();
  await harness.close();
});

const changeArb: fc.Arbitrary<Change> = fc.record({
  kind: fc.constantFrom('insert', 'insert', 'update', 'update', 'delete', 'merge'),
  choice: fc.nat({ max: 7 }),
  rows: fc.integer({ min: 1, max: 3 }),
  // Few buckets, so that changes meet.
  second: fc.constantFrom(0, 10, 3_000),
  late: fc.constantFrom(0, 0, 0, 1, 2),
});
const meanwhileArb = fc.option(changeArb, { freq: 2 });
const stepArb: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: changeArb.map((change): Step => ({ step: 'change', change })) },
  { weight: 2, arbitrary: changeArb.map((change): Step => ({ step: 'begin', change })) },
  {
    weight: 6,
    arbitrary: fc
      .constantFrom('commit', 'rollback', 'detach', 'attach', 'back up', 'restore', 'fail over', 'maintain')
      .map((step): Step => ({ step })),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(0, 1, 2).map((hours): Step => ({ step: 'set the clock back', hours })),
  },
  { weight: 4, arbitrary: meanwhileArb.map((meanwhile): Step => ({ step: 'end the hour', meanwhile })) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.nat({ max: 2 }), meanwhileArb)
      .map(([hour, meanwhile]): Step => ({ step: 'export again', hour, meanwhile })),
  },
);

const formats = [
  { file_format: 'JSONLines', compression: null },
  { file_format: 'CSV', compression: 'gzip' },
  { file_format: 'Parquet', compression: 'zstd' },
];

/** Takes steps, waits until nothing is due, and checks the bucket. */
async function play(model: Model, config: object, steps: readonly Step[]): Promise<void> {
  const history = await startHistory(harness, duckDb, { model, config });
  try {
    for (const step of steps) await history.take(step);
    await history.settle();
    await history.check();
  } finally {
    await history.close();
  }
}

/** A failing history as a script: the steps that `play` takes. */
const scriptOf = (model: Model, config: object, steps: readonly Step[]): string =>
  [`await play('${model}', ${JSON.stringify(config)}, [`, ...steps.map(lineOf), ']);'].join('\n');

const change = (more: Partial<Change> = {}): Change => ({
  kind: 'insert',
  choice: 0,
  rows: 1,
  second: 0,
  late: 0,
  ...more,
});
const endHour: Step = { step: 'end the hour', meanwhile: null };

describe('a source that misbehaves', () => {
  const allCases = (['events', 'persons'] as const).flatMap((model) =>
    formats.map((config) => ({ model, format: config.file_format, config })),
  );
  // Each model and each format once: a format writes rows, whatever has made them late.
  const cases = casesOf(
    allCases.filter(({ model, format }) => (model === 'persons') === (format === 'CSV')),
    allCases,
  );

  it.each(cases)(
    'has every row in the bucket once in the end: $model, $format',
    async ({ model, config }) => {
      await fc.assert(
        fc.asyncProperty(fc.array(stepArb, { minLength: 6, maxLength: 16 }), async (steps) => {
          try {
            await play(model, config, steps);
          } catch (error) {
            throw new Error(scriptOf(model, config, steps), { cause: error });
          }
        }),
        { numRuns: randomCases(1), includeErrorInReport: true },
      );
      expect.hasAssertions();
    },
  );

  it.each(cases)(
    'has what is committed late, replicated and lost: $model, $format',
    async ({ model, config }) => {
      await play(model, config, [
        { step: 'change', change: change({ rows: 3 }) },
        { step: 'change', change: change({ rows: 2, choice: 1 }) },
        { step: 'begin', change: change({ second: 3_000 }) },
        { step: 'end the hour', meanwhile: change({ kind: 'update', second: 10 }) },
        { step: 'back up' },
        { step: 'change', change: change({ late: 1 }) },
        { step: 'commit' },
        { step: 'back up' },
        { step: 'maintain' },
        { step: 'detach' },
        endHour,
        { step: 'maintain' },
        { step: 'attach' },
        { step: 'fail over' },
        { step: 'change', change: change({ kind: 'update', choice: 1, late: 1 }) },
        { step: 'set the clock back', hours: 1 },
        { step: 'change', change: change({ kind: 'update', choice: 2, second: 3_000 }) },
        { step: 'restore' },
      ]);
      expect.hasAssertions();
    },
  );
});
