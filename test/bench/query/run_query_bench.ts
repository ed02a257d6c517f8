import { join } from 'node:path';
import { expect } from '@jest/globals';
import type { QueryBenchResult } from '../../../src/bench/query/result.ts';
import { fromSetUp } from '../../setup/environment.ts';
import { expectNothingLeft, runBench } from '../run_bench.ts';

/** Runs `bench query` with few events. Expects equal results of exportd and hand-written SQL, and that its data is deleted. */
export async function runQueryBench(...args: readonly string[]): Promise<QueryBenchResult> {
  const folder = join(fromSetUp('EXPORTD_TEST_FOLDER'), 'query');
  const sizes = ['--events', '3000', '--days', '40', '--repeat', '1'];
  const command = await runBench(folder, 'query', '--json', ...sizes, ...args);
  const found = JSON.parse(command.stdout) as QueryBenchResult;
  expect(found).toMatchObject({ events: 3_000, days: 40, repeat: 1 });
  expect(found.persons).toBeGreaterThan(100);
  for (const insight of found.insights) {
    expect(insight).toMatchObject({ agrees: true, difference: null });
    expect('ratio' in insight && insight.ratio).toBeGreaterThan(0);
  }
  await expectNothingLeft(command, folder);
  return found;
}
