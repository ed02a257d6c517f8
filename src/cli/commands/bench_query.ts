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
    .description('benchmark typical insights against hand-written SQL with the same results')
    .option('--events <number>', 'number of events', parseId, 5_000_000)
    .option('--days <number>', 'number of days that the events cover', parseId, 180)
    .option('--repeat <number>', 'number of measurements', parseId, 5)
    .option('--only <text>', 'only insights whose name contains this text')
    .option('--plans <folder>', 'instead, write the query plans to this folder, for events of 20 projects');
  addScratchOptions(command).action(async (own: Options) => {
    // Commander assigns options that `bench` has too, such as --events, to `bench`.
    const fromBench = Object.entries(bench.opts()).filter(
      ([name]) => bench.getOptionValueSource(name) === 'cli',
    );
    const options: Options = { ...own, ...Object.fromEntries(fromBench) };
    const [{ runQueryBench }, { queryResultTable }] = await Promise.all([
      import('../../bench/query/query_bench.ts'),
      import('../../bench/query/result_table.ts'),
    ]);
    const plansFolder = options.plans && resolve(options.plans);
    const document = await runOnScratch(options, (location, report, signal) =>
      runQueryBench({ ...options, ...location, plansFolder }, report, signal),
    );
    printer(options)(document, () => {
      const { headings, rows } = queryResultTable(document);
      return table(headings, rows);
    });
    const differing = document.insights.filter((one) => 'agrees' in one && !one.agrees);
    if (differing.length > 0)
      throw new CliError(`Results differ: ${differing.map(({ name }) => name).join('; ')}.`);
  });
}
