import type { Command } from 'commander';
import { parseId, parsePath } from '../arguments.ts';
import { CliError } from '../cli_error.ts';
import { addBenchmark } from './scratch_bench.ts';

/** `bench query`. */
export function addQueryBenchCommand(bench: Command): void {
  const command = bench
    .command('query')
    .description('benchmark typical insights against hand-written SQL with the same results')
    .option('--events <number>', 'number of events', parseId, 5_000_000)
    .option('--days <number>', 'number of days that the events cover', parseId, 180)
    .option('--repeat <number>', 'number of measurements', parseId, 5)
    .option('--text-length <number>', 'characters of the longest text to compile', parseId, 2 ** 20)
    .option(
      '--only <text>',
      'only insights whose name contains this text, or latency, server load, compile times',
    )
    .option(
      '--plans <folder>',
      'instead, write the query plans to this folder, for events of 20 projects',
      parsePath,
    );
  addBenchmark(
    command,
    async () => {
      const [{ runQueryBench }, { compileTable, latencyTable, queryResultTable, serverLoadTable }] =
        await Promise.all([
          import('../../bench/query/query_bench.ts'),
          import('../../bench/query/result_table.ts'),
        ]);
      return {
        run: runQueryBench,
        tables: (result) => [
          queryResultTable(result),
          ...latencyTable(result),
          ...serverLoadTable(result),
          ...compileTable(result),
        ],
      };
    },
    ({ insights }) => {
      const differing = insights.filter((one) => 'agrees' in one && !one.agrees);
      if (differing.length > 0)
        throw new CliError(`Results differ: ${differing.map(({ name }) => name).join('; ')}.`);
    },
  );
}
