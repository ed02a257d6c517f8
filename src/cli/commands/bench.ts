import type { Command } from 'commander';
import { parseId, parseList, parsePath } from '../arguments.ts';
import { addConsoleBenchCommand } from './bench_console.ts';
import { addFingerprintBenchCommand } from './bench_fingerprint.ts';
import { addIsolationBenchCommand } from './bench_isolation.ts';
import { addQueryBenchCommand } from './bench_query.ts';
import { addReconcilersBenchCommand } from './bench_reconcilers.ts';
import { addScheduleBenchCommand } from './bench_schedule.ts';
import { addWorkersBenchCommand } from './bench_workers.ts';
import { addBenchmark } from './scratch_bench.ts';

/** `bench`. */
export function addBenchCommand(program: Command): void {
  const bench = program.command('bench');
  bench
    .description('benchmark exports against a plain COPY and a shell pipeline, on scratch servers')
    .option('--events <number>', 'number of events', parseId, 1_000_000)
    .option(
      '--formats <list>',
      'separated by commas, for example JSONLines+gzip,Parquet+zstd; by default the common ones',
      parseList,
    )
    .option('--repeat <number>', 'number of measurements', parseId, 1)
    .option('--warm', 'let each worker export everything once before the measurement')
    .option('--profile <folder>', 'write a CPU profile of each worker to this folder', parsePath);
  addBenchmark(bench, async () => {
    const [{ runBench }, { resultTable }] = await Promise.all([
      import('../../bench/bench.ts'),
      import('../../bench/result_table.ts'),
    ]);
    return { run: runBench, tables: (result) => [resultTable(result)] };
  });
  addScheduleBenchCommand(bench);
  addQueryBenchCommand(bench);
  addFingerprintBenchCommand(bench);
  addIsolationBenchCommand(bench);
  addReconcilersBenchCommand(bench);
  addConsoleBenchCommand(bench);
  addWorkersBenchCommand(bench);
}
