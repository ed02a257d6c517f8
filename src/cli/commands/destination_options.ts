import type { Command } from 'commander';
import { CliError } from '../cli_error.ts';
import { parseCount } from '../arguments.ts';
import { askSecret } from '../ask_secret.ts';
import type { JsonObject } from './service_command.ts';

/** The flags of an S3 destination. Its keys are not among them: the shell and the list of processes would show them. */
export interface DestinationOptions {
  readonly bucket?: string;
  readonly region?: string;
  readonly prefix?: string;
  readonly format?: string;
  readonly compression?: string;
  readonly compressionLevel?: number;
  readonly bloomFilters?: boolean;
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
    .option('--endpoint-url <url>', 'S3 server other than AWS')
    .option('--virtual-style', 'address the bucket as part of the host name')
    .option('--role-arn <arn>', 'assume this role instead of using keys')
    .option('--machine-credentials', "use the credentials of exportd's machine, if it allows that");

/** The fields of a config that the flags name. */
export function destinationFieldsOf(options: DestinationOptions): JsonObject {
  const { bucket, region, prefix, format, compression, compressionLevel, bloomFilters } = options;
  const { endpointUrl, virtualStyle, roleArn } = options;
  const fields = {
    bucket_name: bucket,
    region,
    prefix,
    file_format: format,
    compression: compression === 'none' ? null : compression,
    compression_level: compressionLevel,
    bloom_filters: bloomFilters,
    endpoint_url: endpointUrl,
    use_virtual_style_addressing: virtualStyle,
    role_arn: roleArn,
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
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
export async function readKeys(environment: Environment): Promise<JsonObject> {
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
): Promise<JsonObject> {
  const { type, config } = given as { type?: string; config?: JsonObject };
  const fields = destinationFieldsOf(options);
  if (options.bucket === undefined) {
    return { ...given, ...(Object.keys(fields).length > 0 && { config: { ...config, ...fields } }) };
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
