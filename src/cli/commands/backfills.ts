import type { Command } from 'commander';
import { backfillTable, fieldTable } from '../export_tables.ts';
import { printer } from '../output.ts';
import { openService } from '../service_client.ts';
import { outcomeLines } from './runs.ts';
import { results, searchOf, serviceCommand, type ServiceCommandOptions } from './service_command.ts';

type Options = ServiceCommandOptions;

const path = (batchExport: string, backfill = ''): string =>
  `batch_exports/${encodeURIComponent(batchExport)}/backfills/${backfill === '' ? '' : `${encodeURIComponent(backfill)}/`}`;

const actions = [
  ['cancel', 'cancel a backfill and its unfinished runs'],
  ['pause', 'pause a backfill: start no more of its runs'],
  ['unpause', 'unpause a backfill'],
] as const;

/** `backfill list|show|cancel|pause|unpause`. */
export function addBackfillCommands(program: Command): void {
  const backfills = program
    .command('backfill')
    .description('backfills of batch exports (uses the HTTP API); "export backfill" starts one');

  serviceCommand(backfills, 'list', 'list the backfills of a batch export with their progress')
    .argument('<export id>')
    .option('--limit <number>', 'maximum number', '100')
    .action(async (id: string, options: Options & { limit: string }) => {
      const { body } = await openService(options).call(
        'GET',
        `${path(id)}${searchOf({ limit: options.limit })}`,
      );
      printer(options)(body, () => backfillTable(results(body)));
    });

  serviceCommand(backfills, 'show', 'show a backfill')
    .argument('<export id>')
    .argument('<backfill id>')
    .action(async (id: string, backfill: string, options: Options) => {
      const { body } = await openService(options).call('GET', path(id, backfill));
      printer(options)(body, () => fieldTable(body));
    });

  for (const [action, description] of actions)
    serviceCommand(backfills, action, description)
      .argument('<export id>')
      .argument('<backfill id>')
      .action(async (id: string, backfill: string, options: Options) => {
        const request = `${path(id, backfill)}${action}/`;
        const { status, body } = await openService(options).call('POST', request, {});
        printer(options)(body, () => outcomeLines(status, body, backfillTable));
      });
}
