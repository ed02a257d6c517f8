import type { Command } from 'commander';
import { CliError } from '../cli_error.ts';
import { counted, printer, table } from '../output.ts';
import { openService } from '../service_client.ts';
import { allowShrinkOption, allowsShrink, type ShrinkOptions } from './allow_shrink.ts';
import { sendAction } from './send_action.ts';
import { results, serviceCommand } from './service_command.ts';

type RetryOptions = ShrinkOptions & { readonly failed?: boolean; readonly since?: string };

/** `export retry`: of one run, or of all failed runs of the project. */
export function addRetryCommand(exports: Command): void {
  serviceCommand(exports, 'retry', 'export the interval of a run, or of all failed runs, again')
    .argument('[export id]')
    .argument('[run id]')
    .option(...allowShrinkOption)
    .option('--failed', 'retry the failed runs of all batch exports of the project')
    .option(
      '--since <time>',
      'with --failed: only runs that failed since then, as an ISO 8601 time or like -2h',
    )
    .action((id: string | undefined, run: string | undefined, options: RetryOptions) => {
      if (options.failed) return retryFailed(options, [id, run]);
      if (id === undefined || run === undefined)
        throw new CliError('Name the batch export and the run, or pass --failed to retry all failed runs.');
      if (options.since !== undefined) throw new CliError('--since needs --failed.');
      const path = `runs/${encodeURIComponent(run)}/retry`;
      return sendAction(options, 'POST', id, path, allowsShrink(options), 'Started run');
    });
}

/** Retries the failed runs of the project. */
async function retryFailed(options: RetryOptions, ids: readonly (string | undefined)[]): Promise<void> {
  if (ids.some((id) => id !== undefined))
    throw new CliError('--failed retries the runs of all batch exports: pass no ids.');
  if (options.allowShrink)
    throw new CliError('--failed never removes rows: retry single runs with --allow-shrink.');
  const request = options.since === undefined ? {} : { since: options.since };
  const { body } = await openService(options).call('POST', 'batch_exports/retry_failed/', request);
  printer(options)(body, () => [
    ...table(
      ['batch export', 'runs', 'backfill', 'detail'],
      results(body).map((one) => [one.batch_export, one.runs, one.backfill_id, one.detail]),
    ),
    `Retrying ${counted(Number(body.runs), 'run')}.`,
  ]);
}
