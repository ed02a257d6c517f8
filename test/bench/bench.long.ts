import { mkdirSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { fromSetUp } from '../setup/environment.ts';
import type { ConsoleBenchResult } from './console/console_bench.ts';
import { readSavedResult, type compareResults } from './exports/compare.ts';
import type { Compared, ExportResult, ExportsBenchResult, Throughput } from './exports/exports_bench.ts';
import { exportsResult } from './exports/exports_result.ts';
import { pipelineObstacle } from './exports/programs.ts';
import { insights } from './query/insights.ts';
import { saveResult, type Skipped, type Statistics } from './results.ts';
import { benchFolder, expectNothingLeft, runBench, runQueryBench } from './run_bench.ts';
import type { ScheduleBenchResult } from './schedule/schedule_bench.ts';
import type { WorkersBenchResult } from './workers/workers_bench.ts';
import type { YearsBenchResult } from './years/years_bench.ts';

const events = 3_000;

function measured<Result extends object>(result: Result | Skipped | undefined): Result {
  if (result === undefined || 'skipped' in result) throw new Error(`Not measured: ${JSON.stringify(result)}`);
  return result;
}

function expectFigures({ seconds, rows_per_second, cpu_seconds }: Throughput): void {
  expect(seconds.all).toEqual([seconds.median]);
  expect(seconds.minimum).toBe(seconds.median);
  expect(cpu_seconds.median).toBeGreaterThan(0);
  expect((rows_per_second * seconds.median) / events).toBeCloseTo(1, 2);
}

/** Ratios are computed from exact times, which are printed with milliseconds. */
function expectRatio(ratio: Statistics | null, one: Throughput, other: Throughput): void {
  expect(((ratio?.median ?? 0) * other.seconds.median) / one.seconds.median).toBeCloseTo(1, 1);
}

function expectComparison(found: Compared | Skipped, result: ExportResult): void {
  const pipeline = measured<Compared>(found);
  expectFigures(pipeline);
  expectRatio(result.ratio_to_pipeline, result, pipeline);
  expect(result.size_to_pipeline).toBeCloseTo(result.bytes / pipeline.bytes, 2);
  // One to create the upload, one for its only part, one to complete it.
  expect(pipeline.s3_requests).toBe(3);
}

function expectNoComparison(pipeline: Compared | Skipped, result: ExportResult): void {
  expect(pipeline).toEqual({ skipped: pipelineObstacle() });
  expect(result).toMatchObject({ ratio_to_pipeline: null, size_to_pipeline: null });
}

/** Without psql there is no pipeline. */
const expectPipeline = pipelineObstacle() === undefined ? expectComparison : expectNoComparison;

describe('npm run bench', () => {
  it('prints, saves and compares a consistent result, and deletes its data', async () => {
    const folder = benchFolder();
    mkdirSync(folder, { recursive: true });
    const [saved, earlier] = [join(folder, 'saved.json'), join(folder, 'earlier.json')];
    saveResult(earlier, exportsResult([4]));
    const command = await runBench(
      folder,
      '--events',
      String(events),
      '--json',
      '--formats',
      'JSONLines+gzip,JSONLines+lzma',
      '--no-duckdb',
      '--no-peers',
      '--save',
      saved,
      '--compare',
      earlier,
    );
    const { comparison, ...found } = JSON.parse(command.stdout) as ExportsBenchResult & {
      comparison: ReturnType<typeof compareResults>;
    };
    expect(readSavedResult(saved)).toEqual(found);
    expect(comparison.warnings).toContain('The number of events differs: 3000 now, 1000000 then.');
    expect(comparison.programs[0]?.figures.seconds).toMatchObject({
      now: found.floor.seconds.median,
      then: 2,
    });
    expect(found).toMatchObject({ events, repeat: 1, warm: false, machine: { node: process.version } });
    expect(found.copy_bytes / events).toBeGreaterThan(400);
    expect(found.copy_bytes / events).toBeLessThan(500);

    const { floor } = found;
    const [gzip, lzma] = found.exports;
    const result = measured<ExportResult & { format: string }>(gzip);
    expect(result).toMatchObject({ format: 'JSONLines+gzip', rows: events });
    expect(lzma).toMatchObject({
      format: 'JSONLines+lzma',
      skipped: expect.stringContaining('not supported'),
    });

    expectFigures(floor);
    expectFigures(result);
    expect(result.seconds_from_command.median).toBeGreaterThanOrEqual(result.seconds.median);
    expect(result.peak_memory_bytes).toBeGreaterThanOrEqual(result.idle_memory_bytes ?? Infinity);
    expectRatio(result.ratio_to_floor, result, floor);
    expect(result.s3_requests).toBeGreaterThan(1);
    expectPipeline(found.pipeline, result);
    for (const peer of [found.duckdb, found.adbc, found.sling])
      expect(peer).toEqual({ skipped: 'Not requested.' });
    expect(result.cpu_of_programs.worker).toBeGreaterThan(0);
    await expectNothingLeft(command, folder);
  });
});

const sum = (values: readonly number[] = []) => values.reduce((total, value) => total + value, 0);

it('bench workers exports every row with two workers, saves the figures and deletes its data', async () => {
  const folder = benchFolder();
  const saved = join(fromSetUp('EXPORTD_TEST_FOLDER'), 'workers.json');
  const sizes = '--events 800 --ranges 4 --exports 2 --intervals 2 --line 1 --s3-delay 1 --workers 2';
  const command = await runBench(folder, 'workers', '--json', '--save', saved, ...sizes.split(' '));
  const found = JSON.parse(command.stdout) as WorkersBenchResult;
  const { large_interval, small_intervals } = found;
  const [large] = large_interval.measurements;
  expect(large).toMatchObject({ workers: 2, rows: 800, ratio: 1 });
  expect(large?.ranges_per_worker).toHaveLength(2);
  expect(sum(large?.ranges_per_worker)).toBeGreaterThanOrEqual(4);
  // Only what passed the line counts: all rows, about 445 bytes each.
  expect((large?.megabytes_per_second ?? 0) * (large?.seconds ?? 0)).toBeGreaterThan(0.3);
  const [small] = small_intervals.measurements;
  // A file and a manifest for each interval.
  expect(small).toMatchObject({ workers: 2, intervals: 4, s3_requests_per_interval: 2 });
  expect(sum(small?.intervals_per_worker)).toBe(4);
  expect(JSON.parse(readFileSync(saved, 'utf8'))).toEqual(found);
  await expectNothingLeft(command, folder);
});

it('bench measures DuckDB and warm workers repeatedly, and writes a profile of each worker', async () => {
  const folder = benchFolder();
  const profiles = join(folder, 'profiles');
  const command = await runBench(
    folder,
    '--events',
    '3000',
    '--formats',
    'JSONLines',
    '--warm',
    '--repeat',
    '2',
    '--profile',
    profiles,
  );
  expect(command.stdout).toMatch(
    /^export +seconds +min–max .*\nfloor .*\n(psql|shell) .*\nDuckDB [\d.]+ Parquet\+zstd .*\nADBC .*\nSling[: ].*\nexportd JSONLines .*\n$/,
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
  // Requests of objects that the benchmark does not create are 400 or 404.
  expect(requests.filter(({ status }) => status < 300).length).toBeGreaterThan(requests.length / 2);
  await expectNothingLeft(command, folder);
});
