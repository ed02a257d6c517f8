import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import type {
  BenchResult,
  ExportResult,
  PipelineResult,
  Skipped,
  Throughput,
} from '../../src/bench/result.ts';
import { pipelineObstacle } from '../../src/bench/pipeline.ts';
import { fromSetUp } from '../setup/environment.ts';
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
function expectRatio(ratio: number | null, one: Throughput, other: Throughput): void {
  expect(((ratio ?? 0) * other.seconds.median) / one.seconds.median).toBeCloseTo(1, 1);
}

function expectComparison(found: PipelineResult | Skipped, result: ExportResult): void {
  const pipeline = measured<PipelineResult>(found);
  expectFigures(pipeline);
  expectRatio(result.times_faster_than_pipeline, pipeline, result);
  expect(result.size_to_pipeline).toBeCloseTo(result.bytes / pipeline.bytes, 2);
}

function expectNoComparison(pipeline: PipelineResult | Skipped, result: ExportResult): void {
  expect(pipeline).toEqual({ skipped: pipelineObstacle() });
  expect(result).toMatchObject({ times_faster_than_pipeline: null, size_to_pipeline: null });
}

/** Without psql there is no pipeline. */
const expectPipeline = pipelineObstacle() === undefined ? expectComparison : expectNoComparison;

describe('exportd bench', () => {
  it('prints a consistent result and deletes its data', async () => {
    const command = await run('--json', '--formats', 'JSONLines+gzip,JSONLines+lzma');
    const found = JSON.parse(command.stdout) as BenchResult;
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
    expectPipeline(found.pipeline, result);
    await expectNothingLeft(command, folder());
  });
});
