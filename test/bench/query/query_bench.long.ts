import { describe, expect, it } from '@jest/globals';
import { runQueryBench } from './run_query_bench.ts';

describe('exportd bench query', () => {
  it('gets the same results from exportd and from hand-written SQL for every insight', async () => {
    const found = await runQueryBench('--text-length', '65536');
    expect(found.insights.length).toBeGreaterThan(5);
    expect(found.latency).not.toBeNull();
    expect(found.server_load.length).toBeGreaterThan(0);
    expect(found.compile_times.length).toBeGreaterThan(0);
  });
});
