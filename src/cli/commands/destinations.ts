import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import type { Command } from 'commander';
import type { BatchExportCreateInput, BatchExportUpdateInput, DestinationTest } from '../../client/client.ts';
import { parseCount } from '../arguments.ts';
import { CliError } from '../cli_error.ts';
import { printer, table } from '../output.ts';
import {
  given,
  asWritten,
  type JsonObject,
  openService,
  type ServiceClient,
  serviceCommand,
  type ServiceCommandOptions,
} from '../service_client.ts';

/** Asks on the terminal without showing what is typed. @returns undefined without a terminal */
async function askSecret(question: string): Promise<string | undefined> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return undefined;
  process.stderr.write(question);
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = createInterface({ input: process.stdin, output: silent, terminal: true });
  try {
    return (await terminal.question('')).trim();
  } finally {
    terminal.close();
    process.stderr.write('\n');
  }
}

/** The flags of an S3 destination. Its keys are not among them: the shell and the list of processes would show them. */
export interface DestinationOptions {
  readonly bucket?: string;
  readonly region?: string;
  readonly prefix?: string;
  readonly format?: string;
  readonly compression?: string;
  readonly compressionLevel?: number;
  readonly bloomFilters?: boolean;
  readonly tableFormat?: string;
  readonly partitionBy?: readonly string[];
  readonly endpointUrl?: string;
  readonly virtualStyle?: boolean;
  readonly roleArn?: string;
  readonly machineCredentials?: boolean;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Where keys come from, for `--help`. */
export const keysHelp =
  '\nAWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are the keys of the bucket; without them, a terminal asks for them.';

/** Adds the flags of an S3 destination to a command. */
export const withDestinationOptions = (command: Command): Command =>
  command
    .option('--bucket <name>', 'bucket to write to')
    .option('--region <name>', 'region of the bucket (default: AWS_REGION)')
    .option('--prefix <prefix>', 'what keys begin with, such as clicks/{year}/{month} (default: none)')
    .option('--format <format>', 'JSONLines, CSV or Parquet (default: JSONLines)')
    .option('--compression <name>', 'such as gzip or zstd, or "none" (default: none)')
    .option(
      '--compression-level <level>',
      'of gzip, zstd or brotli (default: gzip 5, zstd 1, brotli 4)',
      parseCount,
    )
    .option('--bloom-filters', 'of uuid and distinct_id, in Parquet files')
    .option('--table-format <format>', 'of the table that Parquet files belong to: delta')
    .option(
      '--partition-by <partitions>',
      'of the keys, and of the table: date, or date,hour',
      (names: string) => names.split(','),
    )
    .option('--endpoint-url <url>', 'S3 server other than AWS')
    .option('--virtual-style', 'address the bucket as part of the host name')
    .option('--role-arn <arn>', 'assume this role instead of using keys')
    .option('--machine-credentials', "use the credentials of exportd's machine, if it allows that");

/** The fields of a config that the flags name. */
function destinationFieldsOf(options: DestinationOptions): JsonObject {
  const { bucket, region, prefix, format, compression, compressionLevel, bloomFilters } = options;
  const { tableFormat, partitionBy, endpointUrl, virtualStyle, roleArn } = options;
  const fields = {
    bucket_name: bucket,
    region,
    prefix,
    file_format: format,
    compression: compression === 'none' ? null : compression,
    compression_level: compressionLevel,
    bloom_filters: bloomFilters,
    table_format: tableFormat,
    partition_by: partitionBy,
    endpoint_url: endpointUrl,
    use_virtual_style_addressing: virtualStyle,
    role_arn: roleArn,
  };
  return given(fields);
}

const regionOf = ({ AWS_REGION, AWS_DEFAULT_REGION }: Environment): string => {
  const region = AWS_REGION ?? AWS_DEFAULT_REGION;
  if (region === undefined)
    throw new CliError('The region of the bucket is missing: pass --region or set AWS_REGION.');
  return region;
};

/**
 * The keys of the bucket, from the environment or from the terminal.
 * @throws CliError when there are none, or temporary ones
 */
async function readKeys(environment: Environment): Promise<JsonObject> {
  const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN } = environment;
  if (AWS_SESSION_TOKEN)
    throw new CliError(
      'AWS_SESSION_TOKEN is set: its keys expire, and exports need lasting ones. Unset it and the keys, or pass --role-arn.',
    );
  const aws_access_key_id = AWS_ACCESS_KEY_ID ?? (await askSecret('Access key id of the bucket: '));
  const aws_secret_access_key = AWS_SECRET_ACCESS_KEY ?? (await askSecret('Secret access key: '));
  if (!aws_access_key_id || !aws_secret_access_key)
    throw new CliError(
      'The keys of the bucket are missing: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or pass --role-arn or --machine-credentials.',
    );
  return { aws_access_key_id, aws_secret_access_key };
}

/** A new destination as in a request. A config of the flags alone needs keys, unless a role or the machine provides them. */
export async function newDestinationOf(
  options: DestinationOptions,
  given: JsonObject,
  environment: Environment,
): Promise<Destination> {
  const { type, config } = given as { type?: string; config?: JsonObject };
  const fields = destinationFieldsOf(options);
  if (options.bucket === undefined) {
    return asWritten({
      ...given,
      ...(Object.keys(fields).length > 0 && { config: { ...config, ...fields } }),
    });
  }
  const hasKeys = config?.aws_access_key_id !== undefined;
  const needsKeys = !hasKeys && options.roleArn === undefined && options.machineCredentials !== true;
  return {
    type: type ?? 'S3',
    config: {
      prefix: '',
      ...config,
      region: config?.region ?? options.region ?? regionOf(environment),
      ...fields,
      ...(needsKeys ? await readKeys(environment) : {}),
    },
  };
}

type Options = ServiceCommandOptions & DestinationOptions;

type TestedStep = DestinationTest['steps'][number];
type Destination = BatchExportCreateInput['destination'];

/** `destination test`. */
export function addDestinationCommands(program: Command): void {
  const destinations = program
    .command('destination')
    .description('destinations of batch exports (uses the HTTP API)');

  const test = serviceCommand(
    destinations,
    'test',
    'test a destination step by step: writes and deletes a small object below the prefix, saves nothing',
  ).argument('[export id]', 'test the destination of this batch export, with the options as changes');
  withDestinationOptions(test)
    .addHelpText('after', `${keysHelp}\nExit codes: 0 every step passed or was skipped, 1 one failed.`)
    .action(async (id: string | undefined, options: Options) => {
      const service = openService(options);
      const steps =
        id === undefined
          ? await testDestination(service, await newDestinationOf(options, {}, process.env))
          : await testStoredDestination(service, id, destinationFieldsOf(options));
      printer(options)({ steps }, () => stepTable(steps));
      if (hasFailed(steps)) process.exitCode = 1;
    });
}

/** Tests a new destination. @returns its steps @throws CliError without one */
export async function testDestination(
  service: ServiceClient,
  destination: Destination,
): Promise<readonly TestedStep[]> {
  if (destination.config === undefined)
    throw new CliError('Name the destination: pass the id of a batch export, or --bucket.');
  return (await service.post('/batch_exports/test', { body: asWritten({ destination }) })).steps;
}

/** Tests the destination of a batch export, with changes of its config. @returns its steps */
async function testStoredDestination(
  service: ServiceClient,
  id: string,
  config: JsonObject,
): Promise<readonly TestedStep[]> {
  const body: BatchExportUpdateInput = { destination: { config } };
  return (await service.post('/batch_exports/{id}/test', { path: { id }, body })).steps;
}

/** Whether a step failed. */
export const hasFailed = (steps: readonly TestedStep[]): boolean =>
  steps.some(({ result }) => result.status === 'Failed');

/** Formats the steps of a test. */
export const stepTable = (steps: readonly TestedStep[]): string[] =>
  table(
    ['result', 'step', 'detail'],
    steps.map(({ name, result: { status, message, details } }) => [status, name, message ?? details]),
  );
