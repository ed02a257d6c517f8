import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { createReport } from '../../embedded/report.ts';
import { dataFolderPath } from '../../embedded/stack_file.ts';
import { parseId } from '../arguments.ts';
import { CliError } from '../cli_error.ts';
import { printer, table } from '../output.ts';

interface Options {
  readonly events: number;
  readonly days: number;
  readonly repeat: number;
  readonly only?: string;
  readonly plans?: string;
  readonly useEnvironment?: boolean;
  readonly folder?: string;
  readonly json?: boolean;
}

/** `bench query`. */
export function addQueryBenchCommand(bench: Command): void {
  bench
    .command('query')
    .description('measure typical insights beside hand-written SQL for the same answers')
    .option('--events <number>', 'how many events are made', parseId, 5_000_000)
    .option('--days <number>', 'how many days they are spread over', parseId, 180)
    .option('--repeat <number>', 'how often each is measured', parseId, 5)
    .option('--only <text>', 'measure the insights whose names hold this')
    .option(
      '--plans <folder>',
      'keep the plans of the statements there instead, of events that 20 projects share',
    )
    .option(
      '--use-environment',
      'use the servers of DATABASE_URL, TEMPORAL_ADDRESS and S3_ENDPOINT where set',
    )
    .option('--folder <folder>', 'where the scratch data lie, which are removed afterwards')
    .option('--json', 'print one JSON document')
    .action(async (own: Options) => {
      // Some of them `bench` has as well, with defaults of its own, and takes them where they are given.
      const taken = Object.entries(bench.opts()).filter(
        ([name]) => bench.getOptionValueSource(name) === 'cli',
      );
      const options: Options = { ...own, ...Object.fromEntries(taken) };
      const [{ runQueryBench }, { queryResultTable }, { listenForStop }] = await Promise.all([
        import('../../bench/query/query_bench.ts'),
        import('../../bench/query/result_table.ts'),
        import('../../embedded/stop_requests.ts'),
      ]);
      const stopping = new AbortController();
      void listenForStop(() => process.exit(130)).first.then(() =>
        stopping.abort(new CliError('The bench was stopped.')),
      );
      const found = await runQueryBench(
        {
          ...options,
          plansFolder: options.plans && resolve(options.plans),
          folder: join(resolve(options.folder ?? dataFolderPath()), 'exportd-bench'),
          useEnvironment: options.useEnvironment ?? false,
        },
        createReport(process.stderr),
        stopping.signal,
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
