import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import type { Comparison } from '../../src/bench/compare_results.ts';
import { pipelineObstacle } from '../../src/bench/pipeline.ts';
import type {
  BenchResult,
  Compared,
  ExportResult,
  Skipped,
  Statistics,
  Throughput,
} from '../../src/bench/result.ts';
import { readBenchResult, saveResult } from '../../src/bench/saved_result.ts';
import { fromSetUp } from '../setup/environment.ts';
import { benchResult } from './bench_result.ts';
import { expectNothingLeft, runBench } from './run_bench.ts';

const events = 3_000;
const folder = () => join(fromSetUp('EXPORTD_TEST_FOLDER'), 'bench');

const run = (...args: string[]) => runBench(folder(), '--events', String(events), ...args);

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

describe('exportd bench', () => {
  it('prints, saves and compares a consistent result, and deletes its data', async () => {
    mkdirSync(folder(), { recursive: true });
    const [saved, earlier] = [join(folder(), 'saved.json'), join(folder(), 'earlier.json')];
    saveResult(earlier, benchResult([4]));
    const command = await run(
      ...['--json', '--formats', 'JSONLines+gzip,JSONLines+lzma', '--no-duckdb'],
      ...['--save', saved, '--compare', earlier],
    );
    const { comparison, ...found } = JSON.parse(command.stdout) as BenchResult & { comparison: Comparison };
    expect(readBenchResult(saved)).toEqual(found);
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
    expect(found.duckdb).toEqual({ skipped: 'Not requested.' });
    await expectNothingLeft(command, folder());
  });
});
