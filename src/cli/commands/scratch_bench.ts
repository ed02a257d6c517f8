import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { createReport, type Report } from '../../local_stack/report.ts';
import { dataFolderPath } from '../../local_stack/stack_file.ts';
import { CliError } from '../cli_error.ts';

/** What every bench can be told of the servers it measures on. */
export interface ScratchOptions {
  readonly useEnvironment?: boolean;
  readonly folder?: string;
  readonly json?: boolean;
}

/** Where a bench keeps what it makes. */
export interface ScratchPlace {
  /** A folder of the bench's own, which it removes. */
  readonly folder: string;
  readonly useEnvironment: boolean;
}

/** Adds those options to a bench, behind its own. */
export const addScratchOptions = (command: Command): Command =>
  command
    .option(
      '--use-environment',
      'use the servers of DATABASE_URL, TEMPORAL_ADDRESS and S3_ENDPOINT where set',
    )
    .option('--folder <folder>', 'where the scratch data lie, which are removed afterwards')
    .option('--json', 'print one JSON document');

/**
 * Runs a bench, which tells on standard error how far it is. Whoever stops it once has its data removed, twice ends it.
 * @throws CliError when it was stopped.
 */
export async function runOnScratch<Found>(
  options: ScratchOptions,
  run: (place: ScratchPlace, report: Report, signal: AbortSignal) => Promise<Found>,
): Promise<Found> {
  const { listenForStop } = await import('../../local_stack/stop_requests.ts');
  const stopping = new AbortController();
  void listenForStop(() => process.exit(130)).first.then(() =>
    stopping.abort(new CliError('The bench was stopped.')),
  );
  const place = {
    folder: join(resolve(options.folder ?? dataFolderPath()), 'exportd-bench'),
    useEnvironment: options.useEnvironment ?? false,
  };
  return run(place, createReport(process.stderr), stopping.signal);
}
