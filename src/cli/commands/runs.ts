import { type Command, Option } from 'commander';
import { fieldTable, runTable } from '../export_tables.ts';
import { parseCount } from '../arguments.ts';
import { printer } from '../output.ts';
import { given, openService, serviceCommand, type ServiceCommandOptions } from '../service_client.ts';

type RunOptions = ServiceCommandOptions;

interface ListOptions extends RunOptions {
  readonly status?: string;
  readonly createdBy?: 'schedule' | 'backfill';
  readonly limit: number;
}

/** `run list|show|cancel`. */
export function addRunCommands(program: Command): void {
  const runs = program.command('run').description('runs of batch exports (uses the HTTP API)');

  serviceCommand(runs, 'list', 'list the newest runs of a batch export')
    .argument('<export id>')
    .option('--status <statuses>', 'only these statuses, comma-separated, for example Failed,Running')
    .addOption(
      new Option('--created-by <what>', 'only runs of the schedule, or of backfills and retries').choices([
        'schedule',
        'backfill',
      ]),
    )
    .option('--limit <number>', 'maximum number', parseCount, 100)
    .action(async (id: string, options: ListOptions) => {
      const { status, createdBy: created_by, limit } = options;
      const found = await openService(options).get('/batch_exports/{batch_export_id}/runs', {
        path: { batch_export_id: id },
        query: given({ status, created_by, limit }),
      });
      printer(options)(found, () => runTable(found.results));
    });

  serviceCommand(runs, 'show', 'show a run')
    .argument('<export id>')
    .argument('<run id>')
    .action(async (id: string, run: string, options: RunOptions) => {
      const path = { batch_export_id: id, id: run };
      const found = await openService(options).get('/batch_exports/{batch_export_id}/runs/{id}', { path });
      printer(options)(found, () => fieldTable(found));
    });

  serviceCommand(runs, 'cancel', 'cancel a run; its interval is not exported again automatically')
    .argument('<export id>')
    .argument('<run id>')
    .action(async (id: string, run: string, options: RunOptions) => {
      const path = { batch_export_id: id, id: run };
      const cancelled = await openService(options).post('/batch_exports/{batch_export_id}/runs/{id}/cancel', {
        path,
      });
      printer(options)(cancelled, () => ('detail' in cancelled ? [cancelled.detail] : runTable([cancelled])));
    });
}

export type BackfillOptions = ServiceCommandOptions;
