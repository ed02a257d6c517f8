import type { Command } from 'commander';
import { parseCount } from '../arguments.ts';
import { backfillTable, fieldTable } from '../export_tables.ts';
import { printer } from '../output.ts';
import { openService, serviceCommand } from '../service_client.ts';
import type { BackfillOptions } from './runs.ts';

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
    .option('--limit <number>', 'maximum number', parseCount, 100)
    .action(async (id: string, options: BackfillOptions & { limit: number }) => {
      const { limit } = options;
      const found = await openService(options).get('/batch_exports/{batch_export_id}/backfills', {
        path: { batch_export_id: id },
        query: { limit },
      });
      printer(options)(found, () => backfillTable(found.results));
    });

  serviceCommand(backfills, 'show', 'show a backfill')
    .argument('<export id>')
    .argument('<backfill id>')
    .action(async (id: string, backfill: string, options: BackfillOptions) => {
      const path = { batch_export_id: id, id: backfill };
      const found = await openService(options).get('/batch_exports/{batch_export_id}/backfills/{id}', {
        path,
      });
      printer(options)(found, () => fieldTable(found));
    });

  for (const [action, description] of actions)
    serviceCommand(backfills, action, description)
      .argument('<export id>')
      .argument('<backfill id>')
      .action(async (id: string, backfill: string, options: BackfillOptions) => {
        const path = { batch_export_id: id, id: backfill };
        const changed = await openService(options).post(
          `/batch_exports/{batch_export_id}/backfills/{id}/${action}`,
          { path },
        );
        printer(options)(changed, () => ('detail' in changed ? [changed.detail] : backfillTable([changed])));
      });
}
