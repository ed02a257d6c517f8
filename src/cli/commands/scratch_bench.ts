import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { createReport, type Report } from '../../local_stack/report.ts';
import { dataFolderPath } from '../../local_stack/stack_file.ts';
import { CliError } from '../cli_error.ts';

/** Options of every benchmark. */
export interface ScratchOptions {
  readonly useEnvironment?: boolean;
  readonly folder?: string;
  readonly json?: boolean;
}

/** The scratch servers of a benchmark. */
export interface ScratchLocation {
  /** A dedicated folder, deleted afterwards. */
  readonly folder: string;
  readonly useEnvironment: boolean;
}

/** Adds these options after those of the benchmark. */
export const addScratchOptions = (command: Command): Command =>
  command
    .option(
      '--use-environment',
      'use the servers of DATABASE_URL, TEMPORAL_ADDRESS and S3_ENDPOINT if they are set',
    )
    .option('--folder <folder>', 'parent folder of the scratch data, which is deleted afterwards')
    .option('--json', 'print JSON');

/**
 * Runs a benchmark, which reports its progress on stderr. The first Ctrl-C deletes the scratch data, the second exits at once.
 * @throws CliError when it was stopped.
 */
export async function runOnScratch<Result>(
  options: ScratchOptions,
  run: (location: ScratchLocation, report: Report, signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const { listenForShutdown: listenForShutdown } = await import('../../local_stack/shutdown_signals.ts');
  const stopping = new AbortController();
  void listenForShutdown(() => process.exit(130)).first.then(() =>
    stopping.abort(new CliError('The benchmark was stopped.')),
  );
  const location = {
    folder: join(resolve(options.folder ?? dataFolderPath()), 'exportd-bench'),
    useEnvironment: options.useEnvironment ?? false,
  };
  return run(location, createReport(process.stderr), stopping.signal);
}
