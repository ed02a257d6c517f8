import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import type { ScheduleBenchDocument } from '../../../src/bench/schedule/document.ts';
import { fromSetUp } from '../../setup/environment.ts';
import { expectNothingLeft, runBench } from '../run_bench.ts';

const folder = () => join(fromSetUp('EXPORTD_TEST_FOLDER'), 'schedule');

describe('exportd bench schedule', () => {
  it('prints one document whose figures fit together, and leaves nothing behind', async () => {
    // Not a tick: the next would be up to a minute away.
    const sizes = ['--exports', '0', '--backfill', '5', '--bare', '5'];
    const ended = await runBench(folder(), 'schedule', '--json', ...sizes);
    const found = JSON.parse(ended.stdout) as ScheduleBenchDocument;
    const { bare, backfill, largest_history } = found;
    expect(found).toMatchObject({ exports: 0, settle_seconds: 0, creation: null, ticks: [] });
    expect(bare.map(({ at_once }) => at_once)).toEqual([20, 3, 20, 3]);
    expect(backfill).toMatchObject({ intervals: 5, at_once: 3, run: { sampled: 5 } });
    expect(backfill.runs_per_second * backfill.seconds).toBeCloseTo(5, 1);
    expect(backfill.use.worker.cpu_seconds).toBeGreaterThan(0);
    // Servers that the bench did not start have no figures.
    expect(backfill.use.temporal).toEqual({ cpu_seconds: null, memory_bytes: null });
    expect(largest_history.workflow_id).toMatch(/^batch-export-/);
    expect(largest_history.events).toBeGreaterThan(10);
    expect(largest_history.events).toBeLessThan(5_000);

    await expectNothingLeft(ended, folder());
  });
});
