import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { createReport } from '../../embedded/report.ts';
import { dataFolderPath } from '../../embedded/stack_file.ts';
import { parseId } from '../arguments.ts';
import { CliError } from '../cli_error.ts';
import { printer, table } from '../output.ts';
import { addQueryBenchCommand } from './bench_query.ts';
import { addScheduleBenchCommand } from './bench_schedule.ts';

interface Options {
  readonly events: number;
  readonly formats?: string;
  readonly repeat: number;
  readonly warm?: boolean;
  readonly profile?: string;
  readonly useEnvironment?: boolean;
  readonly folder?: string;
  readonly json?: boolean;
}

/** `bench`. */
export function addBenchCommand(program: Command): void {
  const bench = program
    .command('bench')
    .description('measure exports of many events beside a bare COPY and a shell pipeline, on scratch servers')
    .option('--events <number>', 'how many events are made', parseId, 1_000_000)
    .option('--formats <list>', 'e.g. JSONLines+gzip,Parquet+zstd; else all that are usual')
    .option('--repeat <number>', 'how often everything is measured', parseId, 1)
    .option('--warm', 'let each worker export everything once before it is measured')
    .option('--profile <folder>', 'keep a CPU profile of each worker there')
    .option(
      '--use-environment',
      'use the servers of DATABASE_URL, TEMPORAL_ADDRESS and S3_ENDPOINT where set',
    )
    .option('--folder <folder>', 'where the scratch data lie, which are removed afterwards')
    .option('--json', 'print one JSON document')
    .action(async (options: Options) => {
      const [{ runBench }, { defaultFormats }, { resultTable }, { listenForStop }] = await Promise.all([
        import('../../bench/bench.ts'),
        import('../../bench/formats.ts'),
        import('../../bench/result_table.ts'),
        import('../../embedded/stop_requests.ts'),
      ]);
      const stopping = new AbortController();
      void listenForStop(() => process.exit(130)).first.then(() =>
        stopping.abort(new CliError('The bench was stopped.')),
      );
      const { events, repeat, profile } = options;
      const found = await runBench(
        {
          events,
          repeat,
          warm: options.warm ?? false,
          formats: options.formats?.split(',') ?? defaultFormats,
          folder: join(resolve(options.folder ?? dataFolderPath()), 'exportd-bench'),
          useEnvironment: options.useEnvironment ?? false,
          profileFolder: profile && resolve(profile),
        },
        createReport(process.stderr),
        stopping.signal,
      );
      printer(options)(found, () => {
        const { headings, rows } = resultTable(found);
        return table(headings, rows);
      });
    });
  addScheduleBenchCommand(bench);
  addQueryBenchCommand(bench);
}
