import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import type { WorkersBenchResult } from '../../../src/bench/workers/result.ts';
import { fromSetUp } from '../../setup/environment.ts';
import { expectNothingLeft, runBench } from '../run_bench.ts';

const sum = (values: readonly number[] = []) => values.reduce((total, value) => total + value, 0);

it('exportd bench workers exports every row with two workers, saves the figures and deletes its data', async () => {
  const folder = join(fromSetUp('EXPORTD_TEST_FOLDER'), 'workers');
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
