import { type Command, Option } from 'commander';
import { models } from '../../domain/batch_export.ts';
import type { BatchExportCreateInput, BatchExportUpdateInput } from '../../client/client.ts';
import { parseCount, parseJsonObject } from '../arguments.ts';
import { CliError } from '../cli_error.ts';
import {
  conditionLines,
  coverageLines,
  definitionLines,
  differenceLines,
  exportListTable,
  exportTable,
  formatDuration,
  fieldTable,
  intervalTable,
  lagLines,
  manifestTable,
  recipeLines,
  runTable,
} from '../export_tables.ts';
import { counted } from '../../domain/in_words.ts';
import { confirm, printer, printList, table, yesOption } from '../output.ts';
import {
  asWritten,
  type CommandOutcome,
  given,
  type JsonObject,
  openService,
  type ServiceClient,
  serviceCommand,
  type ServiceCommandOptions,
} from '../service_client.ts';
import { addGetCommand } from './apply.ts';
import {
  type DestinationOptions,
  hasFailed,
  keysHelp,
  newDestinationOf,
  stepTable,
  testDestination,
  withDestinationOptions,
} from './destinations.ts';

/** The id at the end of a URL. */
const idIn = (location: string | null): string | undefined => location?.split('/').filter(Boolean).at(-1);

/** Sends a command of a batch export and prints what it created. */
async function sendCommand(
  options: ServiceCommandOptions,
  send: (service: ServiceClient) => Promise<CommandOutcome>,
  message: string,
): Promise<void> {
  const { applied, location } = await send(openService(options));
  const createdId = idIn(location);
  printer(options)({ accepted: true, applied, location }, () => [
    !applied
      ? 'Accepted. The command is still being processed.'
      : createdId === undefined
        ? message
        : `${message}: ${createdId}`,
  ]);
}

type RetryOptions = ServiceCommandOptions & { readonly failed?: boolean; readonly since?: string };

/** `export retry`: of one run, or of all failed runs of the project. */
function addRetryCommand(exports: Command): void {
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

interface DifferenceOptions extends ServiceCommandOptions {
  readonly keep?: boolean;
  readonly remove?: number;
  readonly reason?: string;
}

/** `export difference`: the rows of an interval that the source lacks, and the decision about them. */
function addDifferenceCommand(exports: Command): void {
  serviceCommand(
    exports,
    'difference',
    'show the rows of an interval that its files have and the source lacks, and keep or remove them',
  )
    .argument('<id>')
    .argument('<start>', 'start of the interval, as an ISO 8601 time')
    .option('--keep', 'keep them: the files stay as they are, and the alarm ends')
    .option('--remove <rows>', 'export the interval again without them: their number', parseCount)
    .option('--reason <text>', 'why; required to keep or remove them')
    .action(async (id: string, start: string, options: DifferenceOptions) => {
      const { keep, remove: rows, reason } = options;
      const path = { batch_export_id: id, start };
      const isDecision = keep === true || rows !== undefined;
      if (keep === true && rows !== undefined) throw new CliError('Pass either --keep or --remove.');
      if (!isDecision && reason !== undefined) throw new CliError('--reason needs --keep or --remove.');
      if (!isDecision) {
        const difference = await openService(options).get(differencePath, { path });
        printer(options)(difference, () => differenceLines(difference));
        return;
      }
      if (reason === undefined) throw new CliError('Say why with --reason.');
      const decision = keep === true ? 'keep' : 'remove';
      const body = { decision, reason, ...(rows !== undefined && { rows }) } as const;
      await sendCommand(
        options,
        (service) => service.command('POST', differencePath, { path, body }),
        keep === true ? 'Kept.' : 'The interval is exported again without these rows.',
      );
    });
}

const differencePath = '/batch_exports/{batch_export_id}/intervals/{start}/difference';

interface CreateOptions extends ServiceCommandOptions, DestinationOptions {
  readonly name?: string;
  readonly model?: string;
  readonly interval?: string;
  readonly timezone?: string;
  readonly query?: string;
  readonly paused?: boolean;
  readonly test?: boolean;
}

const examples = `
Examples:
  exportd export create --bucket my-bucket --region eu-central-1 --prefix clicks/{year} --format Parquet --compression zstd
  exportd export create '{"retention_days": 365}' --model persons --interval day --bucket my-bucket --region eu-central-1`;

/** `export create`: from flags, from JSON, or from both. */
function addCreateCommand(exports: Command): void {
  const create = serviceCommand(exports, 'create', 'create a batch export')
    .argument('[JSON]', 'its fields, as in POST …/batch_exports/; options are added to them', parseJsonObject)
    .option('--name <name>', 'name of the export (default: where it writes to)')
    .addOption(new Option('--model <model>', 'what to export (default: events)').choices(models))
    .option('--interval <interval>', '"hour", "day", "week", "month" or "every N minutes" (default: hour)')
    .option('--timezone <name>', 'IANA time zone in which days start (default: UTC)')
    .option('--query <query>', 'SELECT over the model that chooses columns and rows')
    .option('--paused', 'create it paused')
    .option('--test', 'test the destination first, and create nothing if a step fails');
  withDestinationOptions(create)
    .addHelpText('after', `${keysHelp}\n${examples}`)
    .action(async (given: JsonObject | undefined, options: CreateOptions) => {
      const service = openService(options);
      const body = await bodyOf(given, options);
      if (options.test) {
        const steps = await testDestination(service, body.destination);
        if (hasFailed(steps)) {
          for (const line of stepTable(steps)) process.stderr.write(`${line}\n`);
          throw new CliError('The destination test failed, so no batch export was created.');
        }
      }
      const created = await service.post('/batch_exports', { body });
      printer(options)(created, () =>
        'detail' in created
          ? [`${created.id}: ${created.detail}`]
          : [...exportTable([created]), '', ...definitionLines(created)],
      );
    });
}

/** The body of the request. Without any field that names a destination, there is nothing to create. */
async function bodyOf(
  written: JsonObject | undefined,
  options: CreateOptions,
): Promise<BatchExportCreateInput> {
  if (written === undefined && options.bucket === undefined)
    throw new CliError('Name the bucket with --bucket, or pass the fields of the batch export as JSON.');
  const { name, model, interval, timezone, query, paused, bucket, prefix } = options;
  const fields = { name, model, interval, timezone, dialect_query: query, paused };
  const destination = await newDestinationOf(
    options,
    (written?.destination ?? {}) as JsonObject,
    process.env,
  );
  return asWritten({
    ...(bucket !== undefined && {
      name: prefix === undefined || prefix === '' ? bucket : `${bucket}/${prefix}`,
      interval: 'hour',
    }),
    ...written,
    ...given(fields),
    destination,
  });
}

type Options = ServiceCommandOptions;

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
    .action(async (id: string, options: Options) => {
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
    .action(async (id: string, start: string, options: Options) => {
      const found = await openService(options).get('/batch_exports/{batch_export_id}/intervals/{start}', {
        path: { batch_export_id: id, start },
      });
      printer(options)(found, () => [...intervalTable([found.interval]), '', ...runTable(found.runs)]);
    });

  serviceCommand(exports, 'find', 'say which file of an interval has an event')
    .argument('<id>')
    .argument('<start>', 'start of the interval, as an ISO 8601 time')
    .argument('<uuid>', 'uuid of the event')
    .action(async (id: string, start: string, uuid: string, options: Options) => {
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

type DraftOptions = Options & { readonly id?: string };

/** A command about a batch export that is not saved. */
const addDraftCommand = (exports: Command, name: string, description: string): Command =>
  serviceCommand(exports, name, description)
    .argument(
      '[JSON]',
      'fields of a new export, or with --id the changes of an existing one',
      parseJsonObject,
    )
    .option('--id <id>', 'the batch export that the fields change');

/** Its fields. */
function draftOf(fields: JsonObject | undefined, { id }: DraftOptions): BatchExportUpdateInput {
  if (fields === undefined && id === undefined)
    throw new CliError('Name the batch export with --id, or pass the fields of a new one as JSON.');
  return asWritten(fields ?? {});
}

/** `export list|show|create|update|delete|pause|unpause|backfill|retry|intervals|manifests|reading|difference|logs`. */
export function addExportCommands(program: Command): void {
  const exports = program.command('export').description('manage batch exports (uses the HTTP API)');

  serviceCommand(exports, 'list', 'list the batch exports of the project').action(
    async (options: Options) => {
      const exports = await openService(options).exports();
      printList(options)(exports, exportListTable);
    },
  );

  serviceCommand(exports, 'show', 'show a batch export, its condition, its lag and its newest runs')
    .argument('<id>')
    .action(async (id: string, options: Options) => {
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
    .action(async (id: string, fields: JsonObject, options: Options) => {
      const updated = await openService(options).patch('/batch_exports/{id}', {
        path: { id },
        body: asWritten(fields),
      });
      printer(options)(updated, () => ('detail' in updated ? [updated.detail] : exportTable([updated])));
    });

  serviceCommand(exports, 'delete', 'delete a batch export; its objects stay in the bucket')
    .argument('<id>')
    .option(...yesOption)
    .action(async (id: string, options: Options & { yes?: boolean }) => {
      await confirm(`Delete the batch export ${id}? Its schedule, runs and logs are lost.`, options);
      await sendCommand(
        options,
        (service) => service.command('DELETE', '/batch_exports/{id}', { path: { id } }),
        'Deleted.',
      );
    });

  serviceCommand(exports, 'pause', 'pause a batch export: start no new runs')
    .argument('<id>')
    .action((id: string, options: Options) =>
      sendCommand(
        options,
        (service) => service.command('POST', '/batch_exports/{id}/pause', { path: { id } }),
        'Paused.',
      ),
    );

  serviceCommand(exports, 'unpause', 'unpause a batch export')
    .argument('<id>')
    .option('--backfill', 'also backfill the intervals that ended while it was paused')
    .action((id: string, options: Options & { backfill?: boolean }) =>
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
    .action(async (id: string, options: Options & IntervalFilters) => {
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
    .action(async (id: string, options: Options & { since?: string; limit: number }) => {
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
    .action(async (id: string, options: Options & { reader?: string }) => {
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
    .action(async (id: string, options: Options & { limit: number }) => {
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
