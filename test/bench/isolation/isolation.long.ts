import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import type { IsolationBenchResult } from '../../../src/bench/isolation/result.ts';
import { fromSetUp } from '../../setup/environment.ts';
import { expectNothingLeft, runBench } from '../run_bench.ts';

it('exportd bench isolation prints a consistent result and deletes its data', async () => {
  const folder = join(fromSetUp('EXPORTD_TEST_FOLDER'), 'isolation');
  const sizes = ['--projects', '2', '--runs', '2', '--repeat', '1', '--events', '100'];
  const command = await runBench(folder, 'isolation', '--json', ...sizes);
  const found = JSON.parse(command.stdout) as IsolationBenchResult;
  expect(found).toMatchObject({ projects: 2, runs: 2, repeat: 1, events: 100 });
  for (const { seconds, ratio } of [found.while_starting, found.while_waiting])
    expect(ratio).toBeCloseTo(seconds.median / found.alone.median, 1);
  await expectNothingLeft(command, folder);
});
