import { z } from 'zod';
import { CommandRejected } from '../../domain/errors.ts';
import type { AllowedPrivateAddresses } from '../../network/private_addresses.ts';
import type { RowSelection } from '../../source/row_selection.ts';
import { configAttribute, givenFields, parseFields, rejectField } from '../config_fields.ts';
import type { DestinationSettings } from '../destination_type.ts';
import { missingRowsField } from '../missing_rows_field.ts';
import { rowSelectionFields } from '../row_selection_fields.ts';
import { endpointProblem } from './endpoint.ts';
import { fileFormatOf, fileFormats, formatNames, type FileFormat } from './formats.ts';
import { keyLengthProblem } from './keys.ts';
import { prefixProblem, prefixVariables } from './prefix.ts';

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
      'Parquet: bloom filters of uuid and distinct_id, with which readers skip row groups without a value. Files get a little larger.',
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
      'Rows that the format cannot represent: fail the run, or write them to a -rejected.jsonl file that the manifest references.',
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

/** A validated config of an S3 destination, including secrets. */
export type S3Config = Omit<Fields, keyof FileFormat> & FileFormat;

/** Fields that are stored encrypted and never returned. */
export const secretFields = ['aws_access_key_id', 'aws_secret_access_key'] as const;

/** Defaults of the optional fields. Secrets have no default. */
export const defaultFields: Readonly<Record<string, unknown>> = configSchema
  .omit({ bucket_name: true, region: true, prefix: true })
  .parse({});

const rowSelection = z.object(rowSelectionFields);

/** The rows that a stored config selects. */
export const selectionOf = (config: Readonly<Record<string, unknown>>): RowSelection =>
  rowSelection.parse(config);

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
  checkEndpoint(parsed, settings.EXPORTD_ALLOW_PRIVATE_ENDPOINTS);
  const external_id = externalIdOf(parsed, settings.external_id);
  checkPairs({ ...parsed, external_id });
  checkCredentials(parsed, settings.EXPORTD_ALLOW_AWS_CREDENTIAL_CHAIN);
  return { ...parsed, ...format, external_id };
}

function requireNonEmpty(given: Readonly<Record<string, unknown>>): void {
  const empty = nonEmptyFields.filter((field) => given[field] === '');
  if (empty[0] !== undefined) throw rejectField(empty[0], emptyInputs(empty));
}

/** @throws CommandRejected when keys below the prefix would be invalid or too long */
export function checkPrefix({ prefix }: Pick<Fields, 'prefix'>): void {
  const problem = prefixProblem(prefix) ?? keyLengthProblem(prefix);
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

function checkPairs(config: Fields): void {
  const [missing] = secretFields.filter((field) => config[field] === undefined);
  if (missing !== undefined && secretFields.some((field) => config[field] !== undefined))
    throw rejectField(missing, `Configuration missing required field: '${missing}'`);
  if (config.external_id !== null && config.role_arn === null)
    throw rejectField('external_id', "The field 'external_id' requires 'role_arn'.");
  if (config.kms_key_id !== null && config.encryption !== 'aws:kms')
    throw rejectField('kms_key_id', "The field 'kms_key_id' requires 'encryption' to be 'aws:kms'.");
}
