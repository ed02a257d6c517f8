import { resolve } from 'node:path';
import type { Command } from 'commander';
import { parseId } from '../arguments.ts';
import { CliError } from '../cli_error.ts';
import { printer, table } from '../output.ts';
import { addScratchOptions, runOnScratch, type ScratchOptions } from './scratch_bench.ts';

interface Options extends ScratchOptions {
  readonly events: number;
  readonly days: number;
  readonly repeat: number;
  readonly only?: string;
  readonly plans?: string;
}

/** `bench query`. */
export function addQueryBenchCommand(bench: Command): void {
  const command = bench
    .command('query')
    .description('measure typical insights beside hand-written SQL for the same answers')
    .option('--events <number>', 'how many events are made', parseId, 5_000_000)
    .option('--days <number>', 'how many days they are spread over', parseId, 180)
    .option('--repeat <number>', 'how often each is measured', parseId, 5)
    .option('--only <text>', 'measure the insights whose names hold this')
    .option(
      '--plans <folder>',
      'keep the plans of the statements there instead, of events that 20 projects share',
    );
  addScratchOptions(command).action(async (own: Options) => {
    // Some of them `bench` has as well, with defaults of its own, and takes them where they are given.
    const taken = Object.entries(bench.opts()).filter(([name]) => bench.getOptionValueSource(name) === 'cli');
    const options: Options = { ...own, ...Object.fromEntries(taken) };
    const [{ runQueryBench }, { queryResultTable }] = await Promise.all([
      import('../../bench/query/query_bench.ts'),
      import('../../bench/query/result_table.ts'),
    ]);
    const plansFolder = options.plans && resolve(options.plans);
    const found = await runOnScratch(options, (place, report, signal) =>
      runQueryBench({ ...options, ...place, plansFolder }, report, signal),
    );
    printer(options)(found, () => {
      const { headings, rows } = queryResultTable(found);
      return table(headings, rows);
    });
    const differing = found.insights.filter((one) => 'agrees' in one && !one.agrees);
    if (differing.length > 0)
      throw new CliError(`Answers differ: ${differing.map(({ name }) => name).join('; ')}.`);
  });
}
