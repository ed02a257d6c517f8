import { resolve } from 'node:path';
import type { Command } from 'commander';
import { parseId } from '../arguments.ts';
import { printer, table } from '../output.ts';
import { addQueryBenchCommand } from './bench_query.ts';
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
    .description('measure exports of many events beside a bare COPY and a shell pipeline, on scratch servers')
    .option('--events <number>', 'how many events are made', parseId, 1_000_000)
    .option('--formats <list>', 'e.g. JSONLines+gzip,Parquet+zstd; else all that are usual')
    .option('--repeat <number>', 'how often everything is measured', parseId, 1)
    .option('--warm', 'let each worker export everything once before it is measured')
    .option('--profile <folder>', 'keep a CPU profile of each worker there');
  addScratchOptions(bench).action(async (options: Options) => {
    const [{ runBench }, { defaultFormats }, { resultTable }] = await Promise.all([
      import('../../bench/bench.ts'),
      import('../../bench/formats.ts'),
      import('../../bench/result_table.ts'),
    ]);
    const { events, repeat, profile } = options;
    const order = {
      events,
      repeat,
      warm: options.warm ?? false,
      formats: options.formats?.split(',') ?? defaultFormats,
      profileFolder: profile && resolve(profile),
    };
    const found = await runOnScratch(options, (place, report, signal) =>
      runBench({ ...order, ...place }, report, signal),
    );
    printer(options)(found, () => {
      const { headings, rows } = resultTable(found);
      return table(headings, rows);
    });
  });
  addScheduleBenchCommand(bench);
  addQueryBenchCommand(bench);
}
