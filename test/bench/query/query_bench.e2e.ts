import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import type { QueryBenchResult } from '../../../src/bench/query/result.ts';
import { fromSetUp } from '../../setup/environment.ts';
import { expectNothingLeft, runBench } from '../run_bench.ts';

const folder = () => join(fromSetUp('EXPORTD_TEST_FOLDER'), 'query');

describe('exportd bench query', () => {
  it('gets the same results from exportd and from hand-written SQL, and deletes its data', async () => {
    const sizes = ['--events', '3000', '--days', '40', '--repeat', '1', '--text-length', '65536'];
    const command = await runBench(folder(), 'query', '--json', ...sizes);
    const found = JSON.parse(command.stdout) as QueryBenchResult;
    expect(found).toMatchObject({ events: 3_000, days: 40, repeat: 1 });
    expect(found.persons).toBeGreaterThan(100);
    expect(found.insights.length).toBeGreaterThan(5);
    for (const insight of found.insights) {
      expect(insight).toMatchObject({ agrees: true, difference: null });
      expect('ratio' in insight && insight.ratio).toBeGreaterThan(0);
    }
    await expectNothingLeft(command, folder());
  });
});
