import * as z from 'zod';
import type { Settings } from '../config/settings.ts';
import { CommandRejected } from '../domain/errors.ts';
import type { AllowedPrivateAddresses } from '../network/outgoing_url.ts';
import { type FileFormat, fileFormatOf, fileFormats } from './formats.ts';
import { configAttribute, formatNames, givenFields, parseFields, rejectField } from './config_fields.ts';
import { keyLengthProblem } from './keys.ts';
import { fileFolder, partitionProblem, prefixProblem, prefixVariables } from './prefix.ts';
import { partitionColumns } from './partitions.ts';
import { endpointProblem } from './endpoint.ts';
import { rowSelectionFields } from './selection_config.ts';

/** The config field that decides about rows that are in the bucket and no longer in the source. */
const missingRowsField = {
  on_missing_rows: z
    .enum(
      ['keep', 'follow'],
      `This on_missing_rows is not supported. Supported values are 'keep' and 'follow'.`,
    )
    .default('keep')
    .meta({
      description:
        'Rows that were exported and are no longer in the source, when their interval is exported again: keep them in the bucket, or follow the source and remove them.',
    }),
};

const missingRows = z.object(missingRowsField);

/** Whether a stored config follows the source: rows that are missing there leave the bucket. */
export const followsSource = (config: Readonly<Record<string, unknown>>): boolean =>
  missingRows.parse(config).on_missing_rows === 'follow';

/** Settings that restrict destinations. */
export type DestinationSettings = Pick<
  Settings,
  'EXPORTD_ALLOW_PRIVATE_ENDPOINTS' | 'EXPORTD_ALLOW_AWS_CREDENTIAL_CHAIN' | 'EXPORTD_ROLE_ACCOUNTS'
> & {
  /**
   * For configs of requests: the external id of the project, which exportd chooses, so that a project cannot make exportd
   * assume the role of another. Stored configs have theirs.
   */
  readonly external_id?: string;
  /** For configs of requests: checks that a target can get their files. @throws CommandRejected */
  readonly checkTarget?: (fields: TargetFields) => void;
};

/** The only type of destination. The API and stored configs name it. */
export const destinationType = 'S3';

/** Rejects every other type of destination. @throws CommandRejected */
export function requireDestinationType(name: string): void {
  if (name !== destinationType)
    throw new CommandRejected(
      'invalid_input',
      `"${name}" is not a destination type. Valid types: ${destinationType}.`,
      'destination__type',
    );
}

const oneOf = <Value extends string>(noun: string, plural: string, values: readonly [Value, ...Value[]]) =>
  z.enum(values, `This ${noun} is not supported. Supported ${plural} are ${formatNames(values)}.`);

const emptyInputs = (names: readonly string[]): string =>
  `The following inputs are empty: [${names.map((name) => `'${name}'`).join(', ')}]`;

/** A string that may not be empty. `requireNonEmpty` names all that are, the schema only the first. */
const nonEmpty = (field: string) => z.string().min(1, emptyInputs([field]));

const nonEmptyFields = [
  'bucket_name',
  'region',
  'aws_access_key_id',
  'aws_secret_access_key',
  'kms_key_id',
] as const;

/** A string for a request header, where other characters are invalid. */
const headerText = (field: string) =>
  nonEmpty(field).regex(/^[\x21-\x7e]+$/, `The ${field} must contain only ASCII characters without spaces.`);

const emptyAsNull = (given: string): string | null => (given === '' ? null : given);

const partitionLists = partitionColumns
  .map((_, at) => formatNames(partitionColumns.slice(0, at + 1)))
  .join(' or ');

const fields = {
  // Both names become part of a host name.
  bucket_name: nonEmpty('bucket_name')
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]$/, 'The bucket_name is not a valid bucket name.')
    .meta({ title: 'Bucket' }),
  region: nonEmpty('region')
    .regex(/^[A-Za-z0-9-]{1,63}$/, 'The region is not a valid region name.')
    .meta({
      description: 'The region of the bucket. Servers other than AWS often accept us-east-1.',
      examples: ['eu-central-1', 'us-east-1', 'eu-west-1', 'us-west-2', 'auto'],
    }),
  prefix: z.string().meta({
    description: `Where files are written. Variables: ${prefixVariables.map((name) => `{${name}}`).join(' ')}. Dates are those of the interval's start in UTC.`,
    examples: ['events/{year}/{month}/{day}'],
  }),
  aws_access_key_id: headerText('aws_access_key_id')
    .meta({
      title: 'Access key ID',
      writeOnly: true,
      description: 'With the secret access key, unless exportd assumes a role with its own credentials.',
    })
    .optional(),
  aws_secret_access_key: nonEmpty('aws_secret_access_key')
    .meta({ title: 'Secret access key', writeOnly: true })
    .optional(),
  role_arn: z
    .string()
    .regex(
      /^(arn:aws[a-z-]*:iam::\d{12}:role\/[\w+=,.@/-]{1,512})?$/,
      'The role_arn is not a role ARN. Expected a form like arn:aws:iam::123456789012:role/exports.',
    )
    .transform(emptyAsNull)
    .nullable()
    .default(null)
    .meta({
      title: 'Role ARN',
      description: 'A role that is assumed with the access key, or with the credentials of the machine.',
    }),
  external_id: z
    .string()
    .regex(
      /^([\w+=,.@:/-]{2,1224})?$/,
      'The external_id must have 2 to 1224 characters: letters, digits and any of + = , . @ : / - _',
    )
    .transform(emptyAsNull)
    .nullable()
    .default(null)
    .meta({
      description:
        'Set by exportd, one per project: the trust policy of the role demands it as sts:ExternalId.',
    }),
  endpoint_url: z
    .string()
    .transform(emptyAsNull)
    .nullable()
    .default(null)
    .meta({
      title: 'Endpoint URL',
      description: 'The URL of a server other than AWS.',
      examples: ['https://s3.example.com'],
    }),
  use_virtual_style_addressing: z.boolean().default(false).meta({
    description: 'Whether the name of the bucket is part of the host name. AWS does so always.',
  }),
  file_format: oneOf('file format', 'file formats', fileFormats).default('JSONLines'),
  compression: z.string().nullable().default(null).meta({
    description: 'JSONLines and CSV: gzip, zstd or brotli. Parquet: zstd, snappy, gzip, brotli or lz4.',
  }),
  compression_level: z.int().nullable().default(null).meta({
    description:
      'gzip: 1 to 9, zstd: 1 to 19, brotli: 0 to 11; higher is smaller and slower. Empty for gzip 5, zstd 1, brotli 4.',
  }),
  bloom_filters: z.boolean().default(false).meta({
    description:
      'Parquet: bloom filters of uuid and distinct_id, with which Spark and DuckDB skip row groups without a value. Files get 4 % larger.',
  }),
  table_format: z.string().nullable().default(null).meta({
    description:
      'Parquet: publish each interval as a commit of a Delta table under the constant part of the prefix. exportd must be the only writer of the table. Empty for files and manifests alone.',
  }),
  partition_by: z
    .array(z.enum(partitionColumns, `This partition is not supported. Supported are ${partitionLists}.`))
    .refine((columns) => columns.every((column, at) => column === partitionColumns[at]), {
      error: `The partition_by must be ${partitionLists}, or empty.`,
    })
    .default([])
    .meta({
      title: 'Partition by',
      maxItems: partitionColumns.length,
      description:
        'Partitions of the files, from the start of their interval in UTC: date, or date and hour. Keys get folders like date=2026-11-01/hour=07, and tables these columns. A change applies to the intervals that are exported from then on; a table keeps its partitions. Empty for none.',
    }),
  max_file_size_mb: z
    .int()
    .min(0, 'The max_file_size_mb must be an integer of at least 1 (MiB), or null or 0 for one file.')
    .transform((size) => (size === 0 ? null : size))
    .nullable()
    .default(null)
    .meta({
      title: 'Largest file (MiB)',
      description: 'The size at which the next file of an interval starts. Empty for one file.',
    }),
  on_bad_row: oneOf('on_bad_row', 'values', ['fail', 'reject']).default('fail').meta({
    description:
      'Rows that the format cannot represent, or that PostgreSQL cannot read: fail the run, or write them to a -rejected.jsonl file that the manifest references.',
  }),
  ...missingRowsField,
  ...rowSelectionFields,
  encryption: oneOf('encryption', 'encryptions', ['AES256', 'aws:kms'])
    .nullable()
    .default(null)
    .meta({ description: 'Server-side encryption. Empty for that of the bucket.' }),
  kms_key_id: headerText('kms_key_id')
    .nullable()
    .default(null)
    .meta({ title: 'KMS key ID', description: 'The key of aws:kms.' }),
};
/** The fields of a config. */
export const configSchema = z.strictObject(fields);
type Fields = Readonly<z.infer<typeof configSchema>>;

/** The fields that decide whether a target gets the files, besides their manifests. */
export type TargetFields = Pick<Fields, 'table_format' | 'file_format' | 'prefix'>;

/**
 * JSON Schema of the configs that requests may send, for the OpenAPI document. Null stands for the default of a field.
 * @param tableFormats the values of `table_format`
 */
export function configDocument(tableFormats: readonly string[]): Readonly<Record<string, unknown>> {
  const schema = z.toJSONSchema(
    configSchema.extend({
      table_format: z
        .enum(tableFormats)
        .nullable()
        .default(null)
        .meta(fields.table_format.meta() ?? {}),
    }),
    { io: 'input', unrepresentable: 'any' },
  );
  // The OpenAPI document has a dialect of its own.
  delete schema.$schema;
  const properties = Object.entries(schema.properties ?? {}).map(
    ([field, property]) =>
      [field, schema.required?.includes(field) ? property : { anyOf: [property, { type: 'null' }] }] as const,
  );
  return { title: destinationType, ...schema, properties: Object.fromEntries(properties) };
}

/** A validated config of an S3 destination, including secrets. */
export type S3Config = Omit<Fields, keyof FileFormat> & FileFormat;

/** Fields that are stored encrypted and never returned. */
export const secretFields: readonly string[] = ['aws_access_key_id', 'aws_secret_access_key'];

/** Defaults of the optional fields. Secrets have no default. */
export const defaultFields: Readonly<Record<string, unknown>> = configSchema
  .omit({ bucket_name: true, region: true, prefix: true })
  .parse({});

/**
 * Validates an S3 config from a request and fills in defaults; null means the default of a field.
 * @throws CommandRejected with the invalid field
 */
export function parseS3Config(config: unknown, settings: DestinationSettings): S3Config {
  const given = givenFields(config);
  requireNonEmpty(given);
  const parsed = parseFields(configSchema, given);
  const format = fileFormatOf(parsed);
  checkPrefix(parsed);
  settings.checkTarget?.(parsed);
  checkEndpoint(parsed, settings.EXPORTD_ALLOW_PRIVATE_ENDPOINTS);
  const external_id = externalIdOf(parsed, settings.external_id);
  checkPairs({ ...parsed, external_id });
  checkCredentials(parsed, settings.EXPORTD_ALLOW_AWS_CREDENTIAL_CHAIN);
  checkRole(parsed, settings.EXPORTD_ROLE_ACCOUNTS);
  return { ...parsed, ...format, external_id };
}

function requireNonEmpty(given: Readonly<Record<string, unknown>>): void {
  const empty = nonEmptyFields.filter((field) => given[field] === '');
  if (empty[0] !== undefined) throw rejectField(empty[0], emptyInputs(empty));
}

/** @throws CommandRejected when keys below the prefix would be invalid or too long */
export function checkPrefix(config: Pick<Fields, 'prefix' | 'partition_by'>): void {
  const { prefix } = config;
  const problem = prefixProblem(prefix) ?? partitionProblem(config) ?? keyLengthProblem(fileFolder(config));
  if (problem !== null) throw rejectField('prefix', problem);
}

function checkEndpoint({ endpoint_url }: Fields, allowed: AllowedPrivateAddresses): void {
  const problem = endpoint_url === null ? null : endpointProblem(endpoint_url, allowed);
  if (problem !== null) throw rejectField('endpoint_url', `The endpoint_url is not allowed: ${problem}.`);
}

/** The external id of the project if the config has a role; in stored configs, the stored one. */
function externalIdOf({ external_id, role_arn }: Fields, project: string | undefined): string | null {
  if (project === undefined) return external_id;
  if (external_id !== null && external_id !== project)
    throw rejectField(
      'external_id',
      `The external_id of this project is '${project}' and cannot be chosen. Leave the field out, and let the trust policy of the role demand this id.`,
    );
  return role_arn === null ? null : project;
}

/** Credentials of the machine sign requests to AWS alone. Every other server could ask AWS in their name. */
function checkCredentials(
  { aws_access_key_id, role_arn, endpoint_url }: Fields,
  allowMachine: boolean,
): void {
  if (aws_access_key_id !== undefined || role_arn !== null || (allowMachine && endpoint_url === null)) return;
  throw new CommandRejected(
    'required',
    allowMachine
      ? 'A destination with an endpoint_url needs aws_access_key_id and aws_secret_access_key, or role_arn.'
      : 'Set aws_access_key_id and aws_secret_access_key, or role_arn: this installation does not provide AWS credentials (EXPORTD_ALLOW_AWS_CREDENTIAL_CHAIN).',
    configAttribute('aws_access_key_id'),
  );
}

/** The AWS account of a role. */
export const accountOfRole = (roleArn: string): string => roleArn.split(':')[4] ?? '';

/** Roles that the keys of the config assume are the owner's own affair. */
function checkRole(
  { aws_access_key_id, role_arn }: Fields,
  accounts: DestinationSettings['EXPORTD_ROLE_ACCOUNTS'],
): void {
  if (role_arn === null || aws_access_key_id !== undefined || accounts === undefined) return;
  const account = accountOfRole(role_arn);
  if (!accounts.includes(account))
    throw rejectField(
      'role_arn',
      `exportd assumes no roles of the AWS account ${account}: the operator lists the accounts in EXPORTD_ROLE_ACCOUNTS.`,
    );
}

function checkPairs(config: Fields): void {
  const given: Readonly<Record<string, unknown>> = config;
  const [missing] = secretFields.filter((field) => given[field] === undefined);
  if (missing !== undefined && secretFields.some((field) => given[field] !== undefined))
    throw rejectField(missing, `Configuration missing required field: '${missing}'`);
  if (config.external_id !== null && config.role_arn === null)
    throw rejectField('external_id', "The field 'external_id' requires 'role_arn'.");
  if (config.kms_key_id !== null && config.encryption !== 'aws:kms')
    throw rejectField('kms_key_id', "The field 'kms_key_id' requires 'encryption' to be 'aws:kms'.");
}

/** Maximum file size of a config in bytes; null is unlimited. */
export const maxFileBytesOf = ({ max_file_size_mb }: Pick<S3Config, 'max_file_size_mb'>): number | null =>
  max_file_size_mb === null ? null : max_file_size_mb * 1024 * 1024;
