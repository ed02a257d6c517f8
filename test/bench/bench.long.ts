import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import type { ConsoleBenchResult } from './console/console_bench.ts';
import { insights } from './query/insights.ts';
import { benchFolder, expectNothingLeft, runBench, runQueryBench } from './run_bench.ts';
import type { ScheduleBenchResult } from './schedule/schedule_bench.ts';
import type { YearsBenchResult } from './years/years_bench.ts';

it('bench measures DuckDB and warm workers repeatedly, and writes a profile of each worker', async () => {
  const folder = benchFolder();
  const profiles = join(folder, 'profiles');
  const command = await runBench(
    folder,
    ...['--events', '3000'],
    ...['--formats', 'JSONLines', '--warm', '--repeat', '2', '--profile', profiles],
  );
  expect(command.stdout).toMatch(
    /^export +seconds +min–max .*\nfloor .*\n(psql|shell) .*\nDuckDB [\d.]+ Parquet\+zstd .*\nADBC .*\nSling .*\nexportd JSONLines .*\n$/,
  );
  expect(command.stderr).toMatch(/exportd JSONLines \(2 of 2\): [\d.]+ s/);
  for (const repeat of ['1', '2'])
    expect(readdirSync(join(profiles, `JSONLines-${repeat}`))).toContainEqual(
      expect.stringMatching(/\.cpuprofile$/),
    );
  await expectNothingLeft(command, folder);
});

it('bench schedule prints a consistent result and deletes its data', async () => {
  const folder = benchFolder();
  // No tick: the next one could be a minute away.
  const sizes = ['--exports', '0', '--backfill', '5', '--noop', '5'];
  const command = await runBench(folder, 'schedule', '--json', ...sizes);
  const found = JSON.parse(command.stdout) as ScheduleBenchResult;
  const { noop, backfill } = found;
  expect(found).toMatchObject({ exports: 0, settle_seconds: 0, ticks: [] });
  expect(noop.map(({ concurrency }) => concurrency)).toEqual([20, 3, 20, 3]);
  expect(backfill).toMatchObject({ intervals: 5, concurrency: 3, run: { sampled: 5 } });
  expect(backfill.runs_per_second * backfill.seconds).toBeCloseTo(5, 1);
  await expectNothingLeft(command, folder);
});

it('bench query gets the same results from exportd and from hand-written SQL for every insight', async () => {
  expect((await runQueryBench()).insights).toHaveLength(insights.length);
});

it('bench console measures every page and deletes its data', async () => {
  const folder = benchFolder();
  const sizes = ['--exports', '3', '--runs', '6', '--repeat', '2'];
  const command = await runBench(folder, 'console', '--json', ...sizes);
  const found = JSON.parse(command.stdout) as ConsoleBenchResult;
  expect(found).toMatchObject({ exports: 3, runs: 6 });
  expect(found.pages.map(({ page }) => page)).toEqual(['exports', 'export', 'interval', 'edit', 'query']);
  for (const { bytes, median_ms, maximum_ms } of found.pages) {
    expect(bytes).toBeGreaterThan(0);
    expect(maximum_ms).toBeGreaterThanOrEqual(median_ms);
  }
  await expectNothingLeft(command, folder);
});

it('bench years folds the journal of many exports, collapses it, and deletes its data', async () => {
  const folder = benchFolder();
  const command = await runBench(folder, 'years', '--json', '--runs', '2000', '--repeat', '1');
  const found = JSON.parse(command.stdout) as YearsBenchResult;
  const { rebuild, rebuild_beside_appends, retention, requests } = found;
  expect(found).toMatchObject({ exports: 45, runs: 2_025 });
  // Of each run.
  expect(rebuild.events).toBeGreaterThan(9 * found.runs);
  expect(rebuild_beside_appends.events).toBeGreaterThan(rebuild.events);
  for (const { append_ms } of [rebuild_beside_appends, retention])
    expect(append_ms.maximum).toBeGreaterThanOrEqual(append_ms.median);
  // All but ten of each export.
  expect(retention).toMatchObject({ intervals: 45 * 35, backfills: 45 });
  expect(requests.filter(({ status }) => status >= 400)).toEqual([]);
  await expectNothingLeft(command, folder);
});
