import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import type { ScratchOptions } from '../../bench/measure_on_scratch.ts';
import type { ResultTable } from '../../bench/result.ts';
import { createReport, type Report } from '../../local_stack/report.ts';
import { dataFolderPath } from '../../local_stack/stack_file.ts';
import { CliError } from '../cli_error.ts';
import { printer, table } from '../output.ts';

/** Options of every benchmark on the command line. */
interface CommonOptions {
  readonly useEnvironment?: boolean;
  readonly folder?: string;
  readonly json?: boolean;
}

/** A benchmark, imported when its command runs. */
export interface Benchmark<Options, Result> {
  run(options: Options & ScratchOptions, report: Report, signal: AbortSignal): Promise<Result>;
  tables(result: Result): readonly ResultTable[];
}

/**
 * Adds the common options after those of the benchmark, and runs it on scratch servers: progress on stderr, the result on
 * stdout. The first Ctrl-C deletes the scratch data, the second exits at once.
 * @param check throws when the result, already printed, is a failure.
 */
export function addBenchmark<Options extends object, Result>(
  command: Command,
  load: () => Promise<Benchmark<Options, Result>>,
  check?: (result: Result) => void,
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
      const report = createReport(process.stderr);
      const result = await benchmark.run({ ...options, ...scratch }, report, await untilStopped());
      printer(options)(result, () =>
        benchmark
          .tables(result)
          .flatMap(({ title, headings, rows }) =>
            title === undefined ? table(headings, rows) : [title, ...table(headings, rows), ''],
          ),
      );
      check?.(result);
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

/** A signal that the first Ctrl-C aborts. */
async function untilStopped(): Promise<AbortSignal> {
  const { listenForShutdown } = await import('../../local_stack/shutdown_signals.ts');
  const stopping = new AbortController();
  void listenForShutdown(() => process.exit(130)).first.then(() =>
    stopping.abort(new CliError('The benchmark was stopped.')),
  );
  return stopping.signal;
}
