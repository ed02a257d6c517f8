import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { readSavedResult, type compareResults } from './exports/compare.ts';
import type { Compared, ExportResult, ExportsBenchResult, Throughput } from './exports/exports_bench.ts';
import { exportsResult } from './exports/exports_result.ts';
import { pipelineObstacle } from './exports/programs.ts';
import type { ManyBenchResult } from './many/many_bench.ts';
import { analyses } from './query/analyses.ts';
import { insights } from './query/insights.ts';
import { saveResult, type Skipped, type Statistics } from './results.ts';
import { benchFolder, expectNothingLeft, runBench, runQueryBench } from './run_bench.ts';
import type { ScheduleBenchResult } from './schedule/schedule_bench.ts';
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
  const sizes = ['--backfill', '5', '--noop', '5'];
  const command = await runBench(folder, 'schedule', '--json', ...sizes);
  const found = JSON.parse(command.stdout) as ScheduleBenchResult;
  const { noop, backfill } = found;
  expect(noop.map(({ concurrency }) => concurrency)).toEqual([20, 3, 20, 3]);
  expect(backfill).toMatchObject({ intervals: 5, concurrency: 3, run: { sampled: 5 } });
  expect(backfill.runs_per_second * backfill.seconds).toBeCloseTo(5, 1);
  await expectNothingLeft(command, folder);
});

it('bench many lands each run of a mark once on two workers, and deletes its data', async () => {
  const folder = benchFolder();
  const command = await runBench(folder, 'many', '--json', '--exports', '12', '--workers', '2');
  const found = JSON.parse(command.stdout) as ManyBenchResult;
  expect(found).toMatchObject({ exports: 12, measurements: [{ workers: 2, settle_seconds: 0 }] });
  const [measured] = found.measurements;
  expect(measured?.landings).toMatchObject([
    { interval: 'all', runs: 12 },
    { interval: 'every 1 minutes', runs: 6 },
    { interval: 'every 2 minutes', runs: 6 },
  ]);
  expect(measured?.mark.cpu_seconds.worker).toBeGreaterThan(0);
  expect(measured?.memory).toHaveLength(2);
  for (const { idle_bytes, peak_bytes } of measured?.memory ?? [])
    expect(peak_bytes).toBeGreaterThanOrEqual(idle_bytes ?? Infinity);
  await expectNothingLeft(command, folder);
});

it('bench query gets the same results from exportd and from hand-written SQL for every insight', async () => {
  expect((await runQueryBench()).insights).toHaveLength(insights.length + analyses.length);
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
