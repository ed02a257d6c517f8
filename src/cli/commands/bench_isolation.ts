import type { Command } from 'commander';
import { parseId } from '../arguments.ts';
import { addBenchmark } from './scratch_bench.ts';

/** `bench isolation`. */
export function addIsolationBenchCommand(bench: Command): void {
  const command = bench
    .command('isolation')
    .description('benchmark an export beside projects whose buckets do not respond')
    .option('--events <number>', 'number of events of each hour', parseId, 10_000)
    .option('--repeat <number>', 'hours that are exported in each situation', parseId, 7)
    .option('--projects <number>', 'projects with a bucket that does not respond', parseId, 10)
    .option('--runs <number>', 'active runs of each of these projects', parseId, 100);
  addBenchmark(command, async () => {
    const [{ runIsolationBench }, { isolationResultTable }] = await Promise.all([
      import('../../bench/isolation/isolation_bench.ts'),
      import('../../bench/isolation/result_table.ts'),
    ]);
    return { run: runIsolationBench, tables: (result) => [isolationResultTable(result)] };
  });
}
