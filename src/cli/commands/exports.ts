import type { Command } from 'commander';
import { parseJsonObject } from '../arguments.ts';
import { definitionLines, exportTable, runTable } from '../export_tables.ts';
import { intervalTable } from '../interval_table.ts';
import { lagLines, type Lag } from '../lag_lines.ts';
import { printer, table } from '../output.ts';
import { readExports } from '../read_exports.ts';
import { openService } from '../service_client.ts';
import { allowShrinkOption, allowsShrink, type ShrinkOptions } from './allow_shrink.ts';
import { addGetCommand } from './apply.ts';
import { addCreateCommand } from './create_export.ts';
import { addRetryCommand } from './retry.ts';
import { sendAction } from './send_action.ts';
import {
  results,
  searchOf,
  serviceCommand,
  type JsonObject,
  type ServiceCommandOptions,
} from './service_command.ts';

type Options = ServiceCommandOptions;

interface RangeOptions {
  readonly startAt: string;
  readonly endAt: string;
  readonly dryRun?: boolean;
}

interface IntervalFilters {
  readonly status?: string;
  readonly after?: string;
  readonly before?: string;
  readonly limit: string;
}

/** `export list|show|create|update|delete|pause|unpause|backfill|retry|runs|intervals|logs`. */
export function addExportCommands(program: Command): void {
  const exports = program.command('export').description('manage batch exports (uses the HTTP API)');

  serviceCommand(exports, 'list', 'list the batch exports of the project').action(
    async (options: Options) => {
      const exports = await readExports(openService(options));
      printer(options)({ count: exports.length, results: exports }, () => exportTable(exports));
    },
  );

  serviceCommand(exports, 'show', 'show a batch export, its lag and its newest runs')
    .argument('<id>')
    .action(async (id: string, options: Options) => {
      const { body } = await openService(options).call('GET', `batch_exports/${encodeURIComponent(id)}/`);
      printer(options)(body, () => [
        ...exportTable([body]),
        '',
        ...definitionLines(body),
        ...lagLines(body.lag as Lag | null),
        '',
        ...runTable(results({ results: body.latest_runs })),
      ]);
    });

  addCreateCommand(exports);
  addGetCommand(exports);

  serviceCommand(exports, 'update', 'change a batch export; omitted fields stay unchanged')
    .argument('<id>')
    .argument('<JSON>', 'the fields to change', parseJsonObject)
    .action(async (id: string, fields: JsonObject, options: Options) => {
      const path = `batch_exports/${encodeURIComponent(id)}/`;
      const { body } = await openService(options).call('PATCH', path, fields);
      printer(options)(body, () => exportTable([body]));
    });

  serviceCommand(exports, 'delete', 'delete a batch export; its objects stay in the bucket')
    .argument('<id>')
    .action((id: string, options: Options) => sendAction(options, 'DELETE', id, '', undefined, 'Deleted.'));

  serviceCommand(exports, 'pause', 'pause a batch export: start no new runs')
    .argument('<id>')
    .action((id: string, options: Options) => sendAction(options, 'POST', id, 'pause', {}, 'Paused.'));

  serviceCommand(exports, 'unpause', 'unpause a batch export')
    .argument('<id>')
    .option('--backfill', 'also backfill the intervals that ended while it was paused')
    .action((id: string, options: Options & { backfill?: boolean }) =>
      sendAction(options, 'POST', id, 'unpause', { backfill: options.backfill ?? false }, 'Unpaused.'),
    );

  serviceCommand(exports, 'backfill', 'export the intervals of a past time range')
    .argument('<id>')
    .requiredOption('--start-at <time>', 'ISO 8601 with a time zone offset')
    .requiredOption('--end-at <time>', 'ISO 8601 with a time zone offset')
    .option(...allowShrinkOption)
    .option('--dry-run', 'only print what it would export')
    .action(async (id: string, options: ShrinkOptions & RangeOptions) => {
      const range = { start_at: options.startAt, end_at: options.endAt };
      const request = { ...range, ...allowsShrink(options) };
      if (!options.dryRun) return sendAction(options, 'POST', id, 'backfill', request, 'Started backfill');
      const path = `batch_exports/${encodeURIComponent(id)}/backfill`;
      const { body } = await openService(options).call('POST', path, { ...range, dry_run: true });
      printer(options)(body, () => [
        ...table(
          ['interval start', 'interval end', 'intervals', 'rows'],
          [[body.start_at, body.end_at, body.intervals, body.rows]],
        ),
        ...(typeof body.detail === 'string' ? [body.detail] : []),
      ]);
    });

  addRetryCommand(exports);

  serviceCommand(exports, 'runs', 'list the newest runs of a batch export')
    .argument('<id>')
    .option('--limit <number>', 'maximum number', '100')
    .action(async (id: string, options: Options & { limit: string }) => {
      const path = `batch_exports/${encodeURIComponent(id)}/runs/?limit=${encodeURIComponent(options.limit)}`;
      const { body } = await openService(options).call('GET', path);
      printer(options)(body, () => runTable(results(body)));
    });

  serviceCommand(exports, 'intervals', 'list what is known of each interval of a batch export, newest first')
    .argument('<id>')
    .option('--status <statuses>', 'only these statuses, comma-separated, for example gap,held')
    .option('--after <time>', 'only intervals that end after this ISO 8601 time')
    .option('--before <time>', 'only intervals that start before this ISO 8601 time')
    .option('--limit <number>', 'maximum number', '100')
    .action(async (id: string, options: Options & IntervalFilters) => {
      const { status, after, before, limit } = options;
      const search = searchOf({ status, after, before, limit });
      const path = `batch_exports/${encodeURIComponent(id)}/intervals/${search}`;
      const { body } = await openService(options).call('GET', path);
      printer(options)(body, () => intervalTable(results(body)));
    });

  serviceCommand(exports, 'logs', 'show the newest log lines of a batch export')
    .argument('<id>')
    .option('--limit <number>', 'maximum number', '100')
    .action(async (id: string, options: Options & { limit: string }) => {
      const path = `batch_exports/${encodeURIComponent(id)}/logs/?limit=${encodeURIComponent(options.limit)}`;
      const { body } = await openService(options).call('GET', path);
      printer(options)(body, () =>
        results(body)
          .reverse()
          .map(
            (line) => `${String(line.timestamp)}  ${String(line.level).padEnd(7)}  ${String(line.message)}`,
          ),
      );
    });
}
