import { Option, type Command } from 'commander';
import type { BenchOptions } from '../../bench/bench.ts';
import type { VerifyDepth } from '../../bench/verify_run.ts';
import type { Report } from '../../local_stack/report.ts';
import { parseId, parseList, parsePath } from '../arguments.ts';
import { addConsoleBenchCommand } from './bench_console.ts';
import { addFingerprintBenchCommand } from './bench_fingerprint.ts';
import { addIsolationBenchCommand } from './bench_isolation.ts';
import { addPlotCommand } from './bench_plot.ts';
import { addQueryBenchCommand } from './bench_query.ts';
import { addReconcilersBenchCommand } from './bench_reconcilers.ts';
import { addScheduleBenchCommand } from './bench_schedule.ts';
import { addWorkersBenchCommand } from './bench_workers.ts';
import { addBenchmark } from './scratch_bench.ts';

interface Options extends BenchOptions {
  readonly save?: string;
  readonly compare?: string;
}

/** `bench`. */
export function addBenchCommand(program: Command): void {
  const bench = program.command('bench');
  bench
    .description('benchmark exports against a plain COPY, a shell pipeline and DuckDB, on scratch servers')
    .option('--events <number>', 'number of events', parseId, 1_000_000)
    .option(
      '--formats <list>',
      'separated by commas, for example JSONLines+gzip,Parquet+zstd; by default the common ones',
      parseList,
    )
    .option('--repeat <number>', 'number of measurements', parseId, 1)
    .option('--warm', 'let each worker export everything once before the measurement')
    .option('--no-pipeline', 'do not measure the shell pipeline')
    .option('--no-duckdb', 'do not measure DuckDB')
    .addOption(
      new Option('--verify <depth>', 'how each format is verified after its first measurement')
        .choices(['deep', 'fast'] satisfies VerifyDepth[])
        .default('deep'),
    )
    .option('--profile <folder>', 'write a CPU profile of each worker to this folder', parsePath)
    .option('--save <file>', 'write the result to this file as well', parsePath)
    .option('--compare <file>', 'compare the result with the one that was saved to this file', parsePath);
  addBenchmark(bench, async () => {
    const [
      { runBench },
      { compareResults },
      { comparisonTable },
      { resultTable },
      { readBenchResult, saveResult },
    ] = await Promise.all([
      import('../../bench/bench.ts'),
      import('../../bench/compare_results.ts'),
      import('../../bench/comparison_table.ts'),
      import('../../bench/result_table.ts'),
      import('../../bench/saved_result.ts'),
    ]);
    const run = async (options: Options, report: Report, signal: AbortSignal) => {
      const { save, compare } = options;
      // Before the benchmark, which takes minutes: the file may be missing, or the one that the result is saved to.
      const earlier = compare === undefined ? undefined : readBenchResult(compare);
      const result = await runBench(options, report, signal);
      if (save !== undefined) saveResult(save, result);
      return { ...result, ...(earlier && { comparison: compareResults(result, earlier) }) };
    };
    return {
      run,
      tables: ({ comparison, ...result }) => [
        resultTable(result),
        ...(comparison ? [comparisonTable(comparison)] : []),
      ],
    };
  });
  addScheduleBenchCommand(bench);
  addQueryBenchCommand(bench);
  addFingerprintBenchCommand(bench);
  addIsolationBenchCommand(bench);
  addReconcilersBenchCommand(bench);
  addConsoleBenchCommand(bench);
  addWorkersBenchCommand(bench);
  addPlotCommand(bench);
}
