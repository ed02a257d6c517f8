import { type Command, Option } from 'commander';
import type { BatchExportCreateInput } from '../../client/client.ts';
import { models } from '../../domain/batch_export.ts';
import { parseJsonObject } from '../arguments.ts';
import { CliError } from '../cli_error.ts';
import { definitionLines, exportTable } from '../export_tables.ts';
import { printer } from '../output.ts';
import {
  asWritten,
  given,
  type JsonObject,
  openService,
  serviceCommand,
  type ServiceCommandOptions,
} from '../service_client.ts';
import {
  type DestinationOptions,
  hasFailed,
  keysHelp,
  newDestinationOf,
  stepTable,
  testDestination,
  withDestinationOptions,
} from './destinations.ts';

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
export function addCreateCommand(exports: Command): void {
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
