import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import type { ScheduleBenchResult } from '../../../src/bench/schedule/result.ts';
import { fromSetUp } from '../../setup/environment.ts';
import { expectNothingLeft, runBench } from '../run_bench.ts';

const folder = () => join(fromSetUp('EXPORTD_TEST_FOLDER'), 'schedule');

describe('exportd bench schedule', () => {
  it('prints a consistent result and deletes its data', async () => {
    // No tick: the next one could be a minute away.
    const sizes = ['--exports', '0', '--backfill', '5', '--noop', '5'];
    const command = await runBench(folder(), 'schedule', '--json', ...sizes);
    const found = JSON.parse(command.stdout) as ScheduleBenchResult;
    const { noop: noop, backfill, largest_history } = found;
    expect(found).toMatchObject({ exports: 0, settle_seconds: 0, creation: null, ticks: [] });
    expect(noop.map(({ concurrency: concurrency }) => concurrency)).toEqual([20, 3, 20, 3]);
    expect(backfill).toMatchObject({ intervals: 5, concurrency: 3, run: { sampled: 5 } });
    expect(backfill.runs_per_second * backfill.seconds).toBeCloseTo(5, 1);
    expect(backfill.usage.worker.cpu_seconds).toBeGreaterThan(0);
    // Servers that the benchmark did not start have no values.
    expect(backfill.usage.temporal).toEqual({ cpu_seconds: null, memory_bytes: null });
    expect(largest_history.workflow_id).toMatch(/^bench-\d+-schedule-batch-export-/);
    expect(largest_history.events).toBeGreaterThan(10);
    expect(largest_history.events).toBeLessThan(5_000);

    await expectNothingLeft(command, folder());
  });
});
