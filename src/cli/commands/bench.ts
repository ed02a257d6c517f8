import { resolve } from 'node:path';
import type { Command } from 'commander';
import { parseId } from '../arguments.ts';
import { printer, table } from '../output.ts';
import { addFingerprintBenchCommand } from './bench_fingerprint.ts';
import { addIsolationBenchCommand } from './bench_isolation.ts';
import { addQueryBenchCommand } from './bench_query.ts';
import { addReconcilersBenchCommand } from './bench_reconcilers.ts';
import { addScheduleBenchCommand } from './bench_schedule.ts';
import { addScratchOptions, runOnScratch, type ScratchOptions } from './scratch_bench.ts';

interface Options extends ScratchOptions {
  readonly events: number;
  readonly formats?: string;
  readonly repeat: number;
  readonly warm?: boolean;
  readonly profile?: string;
}

/** `bench`. */
export function addBenchCommand(program: Command): void {
  const bench = program.command('bench');
  bench
    .description('benchmark exports against a plain COPY and a shell pipeline, on scratch servers')
    .option('--events <number>', 'number of events', parseId, 1_000_000)
    .option(
      '--formats <list>',
      'separated by commas, for example JSONLines+gzip,Parquet+zstd; by default the common ones',
    )
    .option('--repeat <number>', 'number of measurements', parseId, 1)
    .option('--warm', 'let each worker export everything once before the measurement')
    .option('--profile <folder>', 'write a CPU profile of each worker to this folder');
  addScratchOptions(bench).action(async (options: Options) => {
    const [{ runBench }, { defaultFormats }, { resultTable }] = await Promise.all([
      import('../../bench/bench.ts'),
      import('../../bench/formats.ts'),
      import('../../bench/result_table.ts'),
    ]);
    const { events, repeat, profile } = options;
    const request = {
      events,
      repeat,
      warm: options.warm ?? false,
      formats: options.formats?.split(',') ?? defaultFormats,
      profileFolder: profile && resolve(profile),
    };
    const document = await runOnScratch(options, (location, report, signal) =>
      runBench({ ...request, ...location }, report, signal),
    );
    printer(options)(document, () => {
      const { headings, rows } = resultTable(document);
      return table(headings, rows);
    });
  });
  addScheduleBenchCommand(bench);
  addQueryBenchCommand(bench);
  addFingerprintBenchCommand(bench);
  addIsolationBenchCommand(bench);
  addReconcilersBenchCommand(bench);
}
