import { join, resolve } from 'node:path';
import { Command, Option } from 'commander';
import { parseId, parseIds } from '../../src/cli/arguments.ts';
import { CliError, describeError } from '../../src/cli/cli_error.ts';
import { printer, stdoutFlushed, table } from '../../src/cli/output.ts';
import { createReport, type Report } from '../../src/local_stack/report.ts';
import { listenForShutdown } from '../../src/local_stack/child_processes.ts';
import { dataFolderPath } from '../../src/local_stack/data_folder.ts';
import type { ExportsBenchOptions, VerifyDepth } from './exports/exports_bench.ts';
import { saveResult, type ResultTable } from './results.ts';
import type { ScratchOptions } from './scratch.ts';

/** The program of `npm run bench`. */

/** Options of every benchmark on the command line. */
interface CommonOptions {
  readonly useEnvironment?: boolean;
  readonly folder?: string;
  readonly json?: boolean;
}

/** A benchmark, imported when its command runs. */
interface Benchmark<Options, Result> {
  run(options: Options & ScratchOptions, report: Report, signal: AbortSignal): Promise<Result>;
  tables(result: Result): readonly ResultTable[];
  /** @throws LaunchError when the result, already printed, is a failure */
  check?(result: Result): void;
}

const parsePath = (text: string): string => resolve(text);
const parseList = (text: string): string[] => text.split(',');

const bench = new Command('npm run bench --')
  .description(
    'benchmark exports against a plain COPY, a shell pipeline, DuckDB, ADBC and Sling, on scratch servers',
  )
  .showHelpAfterError('(add --help for usage)')
  .option('--events <number>', 'number of events', parseId, 1_000_000)
  .option(
    '--formats <list>',
    'separated by commas, for example JSONLines+gzip,Parquet+zstd; by default the common ones',
    parseList,
  )
  .option('--repeat <number>', 'number of measurements', parseId, 1)
  .option('--warm', 'let each worker export everything once before the measurement')
  .addOption(
    new Option(
      '--crowded <time>',
      'let nine tenths of the events arrive within this time, instead of evenly',
    ).choices(['minute', 'second']),
  )
  .option('--no-pipeline', 'do not measure the shell pipeline')
  .option('--no-duckdb', 'do not measure DuckDB')
  .option('--no-peers', 'do not measure ADBC and Sling')
  .addOption(
    new Option('--verify <depth>', 'how each format is verified after its first measurement')
      .choices(['deep', 'fast'] satisfies VerifyDepth[])
      .default('deep'),
  )
  .option('--profile <folder>', 'write a CPU profile of each worker to this folder', parsePath)
  .option('--save <file>', 'write the result to this file as well', parsePath)
  .option('--compare <file>', 'compare the result with the one that was saved to this file', parsePath);
addBenchmark(bench, async () => {
  const [{ runExportsBench, exportsTable }, { compareResults, comparisonTable, readSavedResult }] =
    await Promise.all([import('./exports/exports_bench.ts'), import('./exports/compare.ts')]);
  type Options = ExportsBenchOptions & { readonly save?: string; readonly compare?: string };
  return {
    run: async ({ save, compare, ...options }: Options, report: Report, signal: AbortSignal) => {
      // Before the benchmark, which takes minutes: the file may be missing, or the one that the result is saved to.
      const earlier = compare === undefined ? undefined : readSavedResult(compare);
      const result = await runExportsBench(options, report, signal);
      if (save !== undefined) saveResult(save, result);
      return { ...result, ...(earlier && { comparison: compareResults(result, earlier) }) };
    },
    tables: ({ comparison, ...result }) => [
      exportsTable(result),
      ...(comparison ? [comparisonTable(comparison)] : []),
    ],
  };
});

const schedule = bench
  .command('schedule')
  .description('benchmark an empty backfill against no-op workflows')
  .option('--backfill <number>', 'intervals of the backfill', parseId, 1_000)
  .option('--noop <number>', 'no-op workflows before and after the backfill', parseId, 500)
  .option('--profile <folder>', 'write CPU profiles of the worker to this folder', parsePath);
addBenchmark(schedule, async () => {
  const { runScheduleBench, scheduleTables } = await import('./schedule/schedule_bench.ts');
  return { run: runScheduleBench, tables: scheduleTables };
});

const many = bench
  .command('many')
  .description('benchmark many exports: a mark at which all are due, and workers at rest')
  .option('--exports <number>', 'number of exports', parseId, 3_000)
  .option(
    '--workers <list>',
    'numbers of workers, separated by commas, each measured alone',
    parseIds,
    [1, 2],
  )
  .option('--profile <folder>', 'write CPU profiles of the workers to this folder', parsePath);
addBenchmark(many, async () => {
  const { runManyBench, manyTables, checkManyResult } = await import('./many/many_bench.ts');
  return { run: runManyBench, tables: manyTables, check: checkManyResult };
});

const intervals = bench
  .command('intervals')
  .description('benchmark what a small interval costs, and one without rows')
  .option('--intervals <number>', 'intervals of each measurement', parseId, 200)
  .option('--rows <number>', 'rows of a small interval', parseId, 20)
  .option('--repeat <number>', 'number of measurements', parseId, 3)
  .option('--profile <folder>', 'write CPU profiles of the worker to this folder', parsePath);
addBenchmark(intervals, async () => {
  const { runIntervalsBench, intervalsTables } = await import('./intervals/intervals_bench.ts');
  return { run: runIntervalsBench, tables: intervalsTables };
});

const query = bench
  .command('query')
  .description('benchmark typical insights against hand-written SQL with the same results')
  .option('--events <number>', 'number of events', parseId, 5_000_000)
  .option('--days <number>', 'number of days that the events cover', parseId, 180)
  .option('--repeat <number>', 'number of measurements', parseId, 5)
  .option('--only <text>', 'only insights whose name contains this text')
  .option(
    '--plans <folder>',
    'instead, write the query plans to this folder, for events of 20 projects',
    parsePath,
  );
addBenchmark(query, async () => {
  const { runQueryBench, queryTables, checkQueryResult } = await import('./query/query_bench.ts');
  return { run: runQueryBench, tables: queryTables, check: checkQueryResult };
});

const years = bench
  .command('years')
  .description('benchmark what years of runs leave: sizes, rebuild, retention, requests, passes, backup')
  .option('--runs <number>', 'number of runs of all exports', parseId, 1_000_000)
  .option('--repeat <number>', 'how often each request is measured', parseId, 5);
addBenchmark(years, async () => {
  const { runYearsBench, yearsTables } = await import('./years/years_bench.ts');
  return { run: runYearsBench, tables: yearsTables };
});

try {
  await bench.parseAsync();
  await stdoutFlushed();
  process.exit();
} catch (error) {
  process.stderr.write(`bench: ${describeError(error)}\n`);
  process.exit(1);
}

/**
 * Adds the common options after those of the benchmark, and runs it on scratch servers: progress on stderr, the result on
 * stdout. The first Ctrl-C deletes the scratch data, the second exits at once.
 */
function addBenchmark<Options extends object, Result>(
  command: Command,
  load: () => Promise<Benchmark<Options, Result>>,
): void {
  command
    .option(
      '--use-environment',
      'use the servers of DATABASE_URL, TEMPORAL_ADDRESS and S3_ENDPOINT if they are set',
    )
    .option('--folder <folder>', 'parent folder of the scratch data, which is deleted afterwards')
    .option('--json', 'print JSON')
    .action(async () => {
      const options = optionsOf(command) as Options & CommonOptions;
      const benchmark = await load();
      const scratch: ScratchOptions = {
        folder: join(resolve(options.folder ?? dataFolderPath()), 'exportd-bench'),
        useEnvironment: options.useEnvironment ?? false,
      };
      const stopping = new AbortController();
      void listenForShutdown(() => process.exit(130)).first.then(() =>
        stopping.abort(new CliError('The benchmark was stopped.')),
      );
      const report = createReport(process.stderr);
      const result = await benchmark.run({ ...options, ...scratch }, report, stopping.signal);
      printer(options)(result, () =>
        benchmark
          .tables(result)
          .flatMap(({ title, headings, rows }) =>
            title === undefined ? table(headings, rows) : [title, ...table(headings, rows), ''],
          ),
      );
      benchmark.check?.(result);
    });
}

/** The options of a command. Commander assigns those that its parent has too, such as --events, to the parent. */
function optionsOf(command: Command): Record<string, unknown> {
  const { parent } = command;
  const fromParent = Object.entries(parent?.opts() ?? {}).filter(
    ([name]) => parent?.getOptionValueSource(name) === 'cli',
  );
  return { ...command.opts(), ...Object.fromEntries(fromParent) };
}
