import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import type { QueryBenchDocument } from '../../../src/bench/query/document.ts';
import { fromSetUp } from '../../setup/environment.ts';
import { expectNothingLeft, runBench } from '../run_bench.ts';

const folder = () => join(fromSetUp('EXPORTD_TEST_FOLDER'), 'query');

describe('exportd bench query', () => {
  it('gets the same answers from the product and from hand-written SQL, and leaves nothing behind', async () => {
    const sizes = ['--events', '3000', '--days', '40', '--repeat', '1'];
    const ended = await runBench(folder(), 'query', '--json', ...sizes);
    const found = JSON.parse(ended.stdout) as QueryBenchDocument;
    expect(found).toMatchObject({ events: 3_000, days: 40, repeat: 1 });
    expect(found.persons).toBeGreaterThan(100);
    expect(found.insights.length).toBeGreaterThan(5);
    for (const insight of found.insights) {
      expect(insight).toMatchObject({ agrees: true, difference: null });
      expect('ratio' in insight && insight.ratio).toBeGreaterThan(0);
    }
    await expectNothingLeft(ended, folder());
  });
});
