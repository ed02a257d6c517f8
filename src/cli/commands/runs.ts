import type { Command } from 'commander';
import { fieldTable, runTable } from '../export_tables.ts';
import { printer } from '../output.ts';
import { openService } from '../service_client.ts';
import {
  results,
  searchOf,
  serviceCommand,
  type JsonObject,
  type ServiceCommandOptions,
} from './service_command.ts';

type Options = ServiceCommandOptions;

const path = (batchExport: string, run = ''): string =>
  `batch_exports/${encodeURIComponent(batchExport)}/runs/${run === '' ? '' : `${encodeURIComponent(run)}/`}`;

/** `run list|show|cancel`. */
export function addRunCommands(program: Command): void {
  const runs = program.command('run').description('runs of batch exports (uses the HTTP API)');

  serviceCommand(runs, 'list', 'list the newest runs of a batch export')
    .argument('<export id>')
    .option('--status <statuses>', 'only these statuses, comma-separated, for example Failed,Running')
    .option('--limit <number>', 'maximum number', '100')
    .action(async (id: string, options: Options & { status?: string; limit: string }) => {
      const { status, limit } = options;
      const { body } = await openService(options).call('GET', `${path(id)}${searchOf({ status, limit })}`);
      printer(options)(body, () => runTable(results(body)));
    });

  serviceCommand(runs, 'show', 'show a run')
    .argument('<export id>')
    .argument('<run id>')
    .action(async (id: string, run: string, options: Options) => {
      const { body } = await openService(options).call('GET', path(id, run));
      printer(options)(body, () => fieldTable(body));
    });

  serviceCommand(runs, 'cancel', 'cancel a run; its interval is not exported again automatically')
    .argument('<export id>')
    .argument('<run id>')
    .action(async (id: string, run: string, options: Options) => {
      const { status, body } = await openService(options).call('POST', `${path(id, run)}cancel/`, {});
      printer(options)(body, () => outcomeLines(status, body, runTable));
    });
}

/** What an action on a run or a backfill did: its new state, or that it is still in progress. */
export const outcomeLines = (
  status: number,
  body: JsonObject,
  format: (items: readonly JsonObject[]) => string[],
): string[] => (status === 202 ? [String(body.detail)] : format([body]));
