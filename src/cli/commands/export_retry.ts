import type { Command } from 'commander';
import { counted } from '../../domain/in_words.ts';
import { CliError } from '../cli_error.ts';
import { sendCommand } from '../created_object.ts';
import { printer, table } from '../output.ts';
import { openService, serviceCommand, type ServiceCommandOptions } from '../service_client.ts';

type RetryOptions = ServiceCommandOptions & { readonly failed?: boolean; readonly since?: string };

/** `export retry`: of one run, or of all failed runs of the project. */
export function addRetryCommand(exports: Command): void {
  serviceCommand(exports, 'retry', 'export the interval of a run, or of all failed runs, again')
    .argument('[export id]')
    .argument('[run id]')
    .option('--failed', 'retry the failed runs of the batch export, or without an id of all of the project')
    .option(
      '--since <time>',
      'with --failed: only runs that failed since then, as an ISO 8601 time or like -2h',
    )
    .action((id: string | undefined, run: string | undefined, options: RetryOptions) => {
      if (options.failed) return retryFailed(options, [id, run]);
      if (id === undefined || run === undefined)
        throw new CliError('Name the batch export and the run, or pass --failed to retry all failed runs.');
      if (options.since !== undefined) throw new CliError('--since needs --failed.');
      return sendCommand(
        options,
        (service) =>
          service.command('POST', '/batch_exports/{batch_export_id}/runs/{id}/retry', {
            path: { batch_export_id: id, id: run },
            body: {},
          }),
        'Started run',
      );
    });
}

/** Retries the failed runs of an export, or of the project. */
async function retryFailed(options: RetryOptions, [id, run]: readonly (string | undefined)[]): Promise<void> {
  if (run !== undefined) throw new CliError('--failed retries all failed runs: pass no run.');
  const request = {
    ...(options.since !== undefined && { since: options.since }),
    ...(id !== undefined && { batch_export: id }),
  };
  const retried = await openService(options).post('/batch_exports/retry_failed', { body: request });
  printer(options)(retried, () => [
    ...table(
      ['batch export', 'runs', 'backfill', 'detail'],
      retried.results.map((one) => [one.batch_export, one.runs, one.backfill_id, one.detail]),
    ),
    `Retrying ${counted(retried.runs, 'run')}.`,
  ]);
}
