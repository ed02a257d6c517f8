import { type Command, Option } from 'commander';
import { parseCount, parseJsonObject } from '../arguments.ts';
import {
  conditionLines,
  coverageLines,
  definitionLines,
  exportListTable,
  exportTable,
  fieldTable,
  formatDuration,
  intervalTable,
  lagLines,
  manifestTable,
  recipeLines,
  runTable,
} from '../export_tables.ts';
import { confirm, printer, printList, table, yesOption } from '../output.ts';
import {
  asWritten,
  given,
  type JsonObject,
  openService,
  serviceCommand,
  type ServiceCommandOptions,
} from '../service_client.ts';
import { addGetCommand } from './apply.ts';
import { sendCommand } from '../created_object.ts';
import { addCreateCommand } from './export_create.ts';
import { addDifferenceCommand } from './export_difference.ts';
import { addRetryCommand } from './export_retry.ts';
import { addDraftCommand, draftOf, type DraftOptions } from './draft_command.ts';

interface RangeOptions {
  readonly startAt: string;
  readonly endAt: string;
  readonly only?: 'missing';
  readonly rewrite?: boolean;
  readonly dryRun?: boolean;
}

interface IntervalFilters {
  readonly status?: string;
  readonly after?: string;
  readonly before?: string;
  readonly limit: number;
}

/** `why`. */
export function addWhyCommand(program: Command): void {
  serviceCommand(
    program,
    'why',
    'say why a batch export is not well: the cause, a change that may be the reason, who has to act, and the commands that cure it (uses the HTTP API)',
  )
    .argument('<export id>')
    .action(async (id: string, options: ServiceCommandOptions) => {
      const why = await openService(options).get('/batch_exports/{id}/why', { path: { id } });
      printer(options)(why, () => [
        why.summary,
        ...why.condition.actions.map(({ command }) => `  ${command}`),
        ...coverageLines(why.condition),
      ]);
    });
}

/** `export interval|find|preview|estimate`: what the console shows of an export, and of one that is not saved. */
function addInspectionCommands(exports: Command): void {
  serviceCommand(exports, 'interval', 'show an interval: its runs, generations, files and comparisons')
    .argument('<id>')
    .argument('<start>', 'start of the interval, as an ISO 8601 time')
    .action(async (id: string, start: string, options: ServiceCommandOptions) => {
      const found = await openService(options).get('/batch_exports/{batch_export_id}/intervals/{start}', {
        path: { batch_export_id: id, start },
      });
      printer(options)(found, () => [...intervalTable([found.interval]), '', ...runTable(found.runs)]);
    });

  serviceCommand(exports, 'find', 'say which file of an interval has an event')
    .argument('<id>')
    .argument('<start>', 'start of the interval, as an ISO 8601 time')
    .argument('<uuid>', 'uuid of the event')
    .action(async (id: string, start: string, uuid: string, options: ServiceCommandOptions) => {
      const found = await openService(options).get('/batch_exports/{batch_export_id}/intervals/{start}/row', {
        path: { batch_export_id: id, start },
        query: { uuid },
      });
      printer(options)(found, () => [found.detail, ...(found.file === null ? [] : [found.file.key])]);
    });

  addDraftCommand(exports, 'preview', 'print the first rows that a batch export would write').action(
    async (fields: JsonObject | undefined, options: DraftOptions) => {
      const body = draftOf(fields, options);
      const service = openService(options);
      const { id } = options;
      const preview =
        id === undefined
          ? await service.post('/batch_exports/preview', { body })
          : await service.post('/batch_exports/{id}/preview', { path: { id }, body });
      const names = preview.columns.map(({ name }) => name);
      printer(options)(preview, () => [`First file: ${preview.file}`, '', ...table(names, preview.rows)]);
    },
  );
  addDraftCommand(
    exports,
    'estimate',
    'estimate the rows and bytes of the intervals of a batch export',
  ).action(async (fields: JsonObject | undefined, options: DraftOptions) => {
    const body = draftOf(fields, options);
    const service = openService(options);
    const { id } = options;
    const estimate =
      id === undefined
        ? await service.post('/batch_exports/estimate', { body })
        : await service.post('/batch_exports/{id}/estimate', { path: { id }, body });
    printer(options)(estimate, () => fieldTable(estimate));
  });
}

/** `export list|show|create|update|delete|pause|unpause|backfill|retry|intervals|manifests|reading|difference|logs`. */
export function addExportCommands(program: Command): void {
  const exports = program.command('export').description('manage batch exports (uses the HTTP API)');

  serviceCommand(exports, 'list', 'list the batch exports of the project').action(
    async (options: ServiceCommandOptions) => {
      const exports = await openService(options).exports();
      printList(options)(exports, exportListTable);
    },
  );

  serviceCommand(exports, 'show', 'show a batch export, its condition, its lag and its newest runs')
    .argument('<id>')
    .action(async (id: string, options: ServiceCommandOptions) => {
      const shown = await openService(options).get('/batch_exports/{id}', { path: { id } });
      printer(options)(shown, () => [
        ...exportTable([shown]),
        '',
        ...conditionLines(shown.condition),
        ...definitionLines(shown),
        ...lagLines(shown.lag),
        '',
        ...runTable(shown.latest_runs),
      ]);
    });

  addCreateCommand(exports);
  addGetCommand(exports);

  serviceCommand(exports, 'update', 'change a batch export; omitted fields stay unchanged')
    .argument('<id>')
    .argument('<JSON>', 'the fields to change', parseJsonObject)
    .action(async (id: string, fields: JsonObject, options: ServiceCommandOptions) => {
      const updated = await openService(options).patch('/batch_exports/{id}', {
        path: { id },
        body: asWritten(fields),
      });
      printer(options)(updated, () => ('detail' in updated ? [updated.detail] : exportTable([updated])));
    });

  serviceCommand(exports, 'delete', 'delete a batch export; its objects stay in the bucket')
    .argument('<id>')
    .option(...yesOption)
    .action(async (id: string, options: ServiceCommandOptions & { yes?: boolean }) => {
      await confirm(`Delete the batch export ${id}? Its schedule, runs and logs are lost.`, options);
      await sendCommand(
        options,
        (service) => service.command('DELETE', '/batch_exports/{id}', { path: { id } }),
        'Deleted.',
      );
    });

  serviceCommand(exports, 'pause', 'pause a batch export: start no new runs')
    .argument('<id>')
    .action((id: string, options: ServiceCommandOptions) =>
      sendCommand(
        options,
        (service) => service.command('POST', '/batch_exports/{id}/pause', { path: { id } }),
        'Paused.',
      ),
    );

  serviceCommand(exports, 'unpause', 'unpause a batch export')
    .argument('<id>')
    .option('--backfill', 'also backfill the intervals that ended while it was paused')
    .action((id: string, options: ServiceCommandOptions & { backfill?: boolean }) =>
      sendCommand(
        options,
        (service) =>
          service.command('POST', '/batch_exports/{id}/unpause', {
            path: { id },
            body: { backfill: options.backfill ?? false },
          }),
        'Unpaused.',
      ),
    );

  serviceCommand(exports, 'backfill', 'export the intervals of a past time range')
    .argument('<id>')
    .requiredOption(
      '--start-at <time>',
      'ISO 8601 with a time zone offset, or "first" for the first row of the source',
    )
    .requiredOption('--end-at <time>', 'ISO 8601 with a time zone offset')
    .addOption(
      new Option('--only <what>', '"missing": only the intervals that have no files').choices(['missing']),
    )
    .option('--rewrite', 'also write intervals anew whose files have the rows of the source')
    .option('--allow-shrink', 'also remove rows from the bucket that are no longer in the source')
    .option('--dry-run', 'only print what it would export')
    .action(async (id: string, options: ServiceCommandOptions & RangeOptions & { allowShrink?: boolean }) => {
      const start_at = options.startAt === 'first' ? null : options.startAt;
      const { endAt: end_at, only, rewrite } = options;
      const range = { start_at, end_at, ...given({ only, rewrite }) };
      const path = { id };
      if (!options.dryRun) {
        const body = { ...range, ...(options.allowShrink && { allow_shrink: true }) };
        return sendCommand(
          options,
          (service) => service.command('POST', '/batch_exports/{id}/backfill', { path, body }),
          'Started backfill',
        );
      }
      const body = { ...range, dry_run: true };
      const planned = await openService(options).post('/batch_exports/{id}/backfill', { path, body });
      printer(options)(planned, () => [
        ...('dry_run' in planned
          ? table(
              ['interval start', 'interval end', 'intervals', 'rows', 'takes about'],
              [
                [
                  planned.start_at,
                  planned.end_at,
                  planned.intervals,
                  planned.rows,
                  planned.seconds && formatDuration(planned.seconds),
                ],
              ],
            )
          : []),
        ...(planned.detail === null ? [] : [planned.detail]),
      ]);
    });

  addRetryCommand(exports);

  serviceCommand(exports, 'intervals', 'list what is known of each interval of a batch export, newest first')
    .argument('<id>')
    .option('--status <statuses>', 'only these statuses, comma-separated, for example gap,held')
    .option('--after <time>', 'only intervals that end after this ISO 8601 time')
    .option('--before <time>', 'only intervals that start before this ISO 8601 time')
    .option('--limit <number>', 'maximum number', parseCount, 100)
    .action(async (id: string, options: ServiceCommandOptions & IntervalFilters) => {
      const { status, after, before, limit } = options;
      const intervals = await openService(options).get('/batch_exports/{batch_export_id}/intervals', {
        path: { batch_export_id: id },
        query: given({ status, after, before, limit }),
      });
      printer(options)(intervals, () => intervalTable(intervals.results));
    });

  serviceCommand(
    exports,
    'manifests',
    'list the current manifests of a batch export, in the order of completion',
  )
    .argument('<id>')
    .option('--since <time>', 'only those whose run completed at this ISO 8601 time or later')
    .option('--limit <number>', 'maximum number', parseCount, 100)
    .action(async (id: string, options: ServiceCommandOptions & { since?: string; limit: number }) => {
      const { since, limit } = options;
      const manifests = await openService(options).get('/batch_exports/{batch_export_id}/manifests', {
        path: { batch_export_id: id },
        query: given({ since, limit }),
      });
      printer(options)(manifests, () => manifestTable(manifests.results));
    });

  serviceCommand(exports, 'reading', 'print programs that read the files of a batch export')
    .argument('<id>')
    .option('--reader <name>', 'only the one for this reader, for example duckdb')
    .action(async (id: string, options: ServiceCommandOptions & { reader?: string }) => {
      const reading = await openService(options).get('/batch_exports/{batch_export_id}/reading', {
        path: { batch_export_id: id },
      });
      printer(options)(reading, () => recipeLines(reading, options.reader));
    });

  addInspectionCommands(exports);

  addDifferenceCommand(exports);

  serviceCommand(exports, 'logs', 'show the newest log lines of a batch export')
    .argument('<id>')
    .option('--limit <number>', 'maximum number', parseCount, 100)
    .action(async (id: string, options: ServiceCommandOptions & { limit: number }) => {
      const { limit } = options;
      const logs = await openService(options).get('/batch_exports/{id}/logs', {
        path: { id },
        query: { limit },
      });
      printer(options)(logs, () =>
        logs.results
          .toReversed()
          .map(({ timestamp, level, message }) => `${timestamp}  ${level.padEnd(7)}  ${message}`),
      );
    });
}
