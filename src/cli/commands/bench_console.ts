import type { Command } from 'commander';
import { parseId } from '../arguments.ts';
import { addBenchmark } from './scratch_bench.ts';

/** `bench console`. */
export function addConsoleBenchCommand(bench: Command): void {
  const command = bench
    .command('console')
    .description('benchmark the pages of the console on many exports and runs')
    .option('--exports <number>', 'number of exports', parseId, 1_000)
    .option('--runs <number>', 'number of runs of all exports', parseId, 100_000)
    .option('--repeat <number>', 'how often each page is measured', parseId, 20);
  addBenchmark(command, async () => {
    const [{ runConsoleBench }, { consoleResultTable }] = await Promise.all([
      import('../../bench/console/console_bench.ts'),
      import('../../bench/console/result_table.ts'),
    ]);
    return { run: runConsoleBench, tables: (result) => [consoleResultTable(result)] };
  });
}
