import { expect, it } from '@jest/globals';
import { runQueryBench } from './run_query_bench.ts';

it('exportd bench query gets the same results from exportd and from hand-written SQL, and deletes its data', async () => {
  // One family of insights; query_bench.long.ts measures everything.
  expect((await runQueryBench('--only', 'Trends')).insights).toHaveLength(3);
});
