import type { Command } from 'commander';
import { parseCount, parseId } from '../arguments.ts';
import { addBenchmark } from './scratch_bench.ts';

/** `bench reconcilers`. */
export function addReconcilersBenchCommand(bench: Command): void {
  const command = bench
    .command('reconcilers')
    .description('benchmark passes of the reconcilers: requests to Temporal and seconds')
    .option('--exports <number>', 'number of live exports', parseId, 10_000)
    .option('--runs <number>', 'how many of them have an active run', parseCount, 500)
    .option('--passes <number>', 'number of passes that find nothing to repair', parseId, 3);
  addBenchmark(command, async () => {
    const [{ runReconcilersBench }, { reconcilersResultTable }] = await Promise.all([
      import('../../bench/reconcilers/reconcilers_bench.ts'),
      import('../../bench/reconcilers/result_table.ts'),
    ]);
    return { run: runReconcilersBench, tables: (result) => [reconcilersResultTable(result)] };
  });
}
