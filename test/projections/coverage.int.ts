import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Coverage } from '../../src/domain/coverage.ts';
import { readStandings } from '../../src/projections/export_conditions.ts';
import { disagreements } from '../domain/coverage_sentence.ts';
import { randomCases } from '../setup/effort.ts';
import { anyLifecycle, type Lifecycle, startLifecycle } from './random_lifecycle.ts';

const minuteMs = 60_000;
/** All that the lifecycles do is within this time before now. */
const spanMs = 40 * minuteMs;

/** The middles of the minutes of `spanMs` before the end of the coverage. */
function momentsOf({ ranges }: Coverage): number[] {
  const end = Date.parse(ranges.at(-1)?.end ?? '');
  return Array.from({ length: spanMs / minuteMs }, (_, index) => end - (index + 0.5) * minuteMs);
}

/** What a range of the coverage has of a moment; undefined after its end. */
const stateAt = ({ ranges }: Coverage, moment: number) =>
  ranges.find(
    ({ start, end }) => (start === null || Date.parse(start) <= moment) && moment < Date.parse(end),
  );

const overlapsAny = (moment: number, intervals: readonly (readonly [number, number])[]): boolean =>
  intervals.some(([start, end]) => start <= moment && moment < end);

/** A reader that knows only the manifests: it remembers each that a run has published. */
function openBucket({ database: { pool } }: Lifecycle) {
  const manifests = new Map<string, readonly [number, number]>();
  return {
    list: async () => {
      const { rows } = await pool.query<{ start: string; end: string }>(
        `select data_interval_start as start, data_interval_end as end from exportd.batch_export_runs
         where manifest_key is not null`,
      );
      for (const { start, end } of rows) manifests.set(start, [Date.parse(start), Date.parse(end)]);
      return [...manifests.values()];
    },
  };
}

async function readCoverage({ database: { pool }, batchExportId }: Lifecycle): Promise<Coverage | undefined> {
  const standing = (await readStandings(pool, [batchExportId], () => undefined)).get(batchExportId);
  // The API has what was decided.
  expect(standing?.condition.coverage).toEqual(standing?.coverage);
  const { cause, summary } = standing?.condition ?? {};
  const sentence = standing?.coverage?.sentence;
  expect(cause === 'ok' ? summary : sentence).toBe(sentence);
  return standing?.coverage ?? undefined;
}

/** Expects the ranges to be adjacent, and the sentence to say the same of each moment. */
function expectWhole({ ranges, sentence }: Coverage, moments: readonly number[]): void {
  expect(disagreements({ ranges, sentence }, moments)).toEqual([]);
  expect(ranges[0]?.start).toBeNull();
  expect(ranges.slice(1).map(({ start }) => start)).toEqual(ranges.slice(0, -1).map(({ end }) => end));
  const has = (state: string): boolean => ranges.some((range) => range.state === state);
  expect(sentence.startsWith('Exported ')).toBe(has('exported'));
  expect(sentence).toContain('Not exported: ');
  // A backfill may export again what is exported.
  expect(sentence.includes('Owed: ') && !has('owed')).toBe(false);
  expect(has('owed') && !/Owed: |Backfill: /.test(sentence)).toBe(false);
}

describe('for random lives of an export', () => {
  it('a reader of manifests finds what the coverage says is exported, and at last what it said was owed', async () => {
    await fc.assert(
      fc.asyncProperty(anyLifecycle, async (actions) => {
        const lifecycle = await startLifecycle();
        const bucket = openBucket(lifecycle);
        /** Compares each minute with what a reader finds. */
        const compare = async (): Promise<Coverage | undefined> => {
          const coverage = await readCoverage(lifecycle);
          if (!coverage) return undefined;
          const minutes = momentsOf(coverage);
          expectWhole(coverage, minutes);
          const manifests = await bucket.list();
          for (const moment of minutes)
            expect([moment, stateAt(coverage, moment)?.state === 'exported']).toEqual([
              moment,
              overlapsAny(moment, manifests),
            ]);
          return coverage;
        };
        try {
          for (const { run } of actions) {
            await run(lifecycle);
            await compare();
          }
          const before = await compare();
          if (!before) return;
          await lifecycle.exportWhatIsOwed();
          const manifests = await bucket.list();
          const moments = momentsOf(before);
          for (const moment of moments) {
            const found = stateAt(before, moment);
            expect([moment, found, overlapsAny(moment, manifests)]).toEqual([
              moment,
              found,
              found?.state !== 'not_owed',
            ]);
          }
          const after = await compare();
          // Nothing deletes the export.
          expect(after && moments.filter((moment) => stateAt(after, moment)?.state === 'owed')).toEqual([]);
        } finally {
          await lifecycle.database.drop();
        }
      }),
      { numRuns: randomCases(3) },
    );
  });
});
