import { z } from 'zod';
import { CommandRejected } from '../../domain/errors.ts';
import type { AllowedPrivate } from '../../network/private_addresses.ts';
import type { RowSelection } from '../../source/row_selection.ts';
import { configAttribute, givenFields, parseFields, rejectField } from '../config_fields.ts';
import type { DestinationSettings } from '../destination.ts';
import { rowSelectionMembers } from '../row_selection_fields.ts';
import { endpointProblem } from './endpoint.ts';
import { fileFormatOf, fileFormats, quoted, type FileFormat } from './formats.ts';
import { keyLengthProblem } from './keys.ts';
import { prefixProblem } from './prefix.ts';

const oneOf = <Value extends string>(what: string, whats: string, values: readonly [Value, ...Value[]]) =>
  z.enum(values, `This ${what} is not supported. Supported ${whats} are ${quoted(values)}.`);

const text = (field: string) => z.string().min(1, `The following inputs are empty: ['${field}']`);

/** Text that goes into the header of a request, where anything else would break it. */
const headerText = (field: string) =>
  text(field).regex(/^[\x21-\x7e]+$/, `The ${field} must hold neither spaces nor characters beyond ASCII.`);

const emptyAsNull = (given: string): string | null => (given === '' ? null : given);

const fields = {
  // Both names become part of a host name, so they are held to what can stand in one.
  bucket_name: text('bucket_name').regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]$/,
    'The bucket_name is not a name that a bucket can have.',
  ),
  region: text('region').regex(/^[A-Za-z0-9-]{1,63}$/, 'The region is not the name of a region.'),
  prefix: z.string(),
  aws_access_key_id: headerText('aws_access_key_id').optional(),
  aws_secret_access_key: text('aws_secret_access_key').optional(),
  role_arn: z
    .string()
    .regex(
      /^(arn:aws[a-z-]*:iam::\d{12}:role\/[\w+=,.@/-]{1,512})?$/,
      'The role_arn is not the ARN of a role, such as arn:aws:iam::123456789012:role/exports.',
    )
    .transform(emptyAsNull)
    .nullable()
    .default(null),
  external_id: z
    .string()
    .regex(
      /^([\w+=,.@:/-]{2,1224})?$/,
      'The external_id must have 2 to 1224 characters: letters, digits and any of + = , . @ : / - _',
    )
    .transform(emptyAsNull)
    .nullable()
    .default(null),
  endpoint_url: z.string().transform(emptyAsNull).nullable().default(null),
  use_virtual_style_addressing: z.boolean().default(false),
  file_format: oneOf('file format', 'file formats', fileFormats).default('JSONLines'),
  compression: z.string().nullable().default(null),
  max_file_size_mb: z
    .int()
    .min(0, 'The max_file_size_mb must be a whole number of MiB, at least 1; null or 0 makes one file.')
    .transform((size) => (size === 0 ? null : size))
    .nullable()
    .default(null),
  on_bad_row: oneOf('on_bad_row', 'values', ['fail', 'reject']).default('fail'),
  ...rowSelectionMembers,
  encryption: oneOf('encryption', 'encryptions', ['AES256', 'aws:kms']).nullable().default(null),
  kms_key_id: headerText('kms_key_id').nullable().default(null),
};
const configSchema = z.strictObject(fields);
type Members = Readonly<z.infer<typeof configSchema>>;

/** A checked config of an S3 destination, secrets included. */
export type S3Config = Omit<Members, keyof FileFormat> & FileFormat;

/** The members that are stored encrypted and never returned. */
export const secretFields = ['aws_access_key_id', 'aws_secret_access_key'] as const;

/** What the optional members are when nobody wrote them; the secrets have no default. */
export const defaultFields: Readonly<Record<string, unknown>> = configSchema
  .omit({ bucket_name: true, region: true, prefix: true })
  .parse({});

const rowSelection = z.object(rowSelectionMembers);

/** Which rows a stored config selects. */
export const selectionOf = (config: Readonly<Record<string, unknown>>): RowSelection =>
  rowSelection.parse(config);

/**
 * Checks an S3 config as a user sent it and fills in defaults; null stands for a member's default.
 * @throws CommandRejected that names the member at fault.
 */
export function parseS3Config(config: unknown, settings: DestinationSettings): S3Config {
  const parsed = parseFields(configSchema, givenFields(config));
  const format = fileFormatOf(parsed);
  checkPrefix(parsed);
  checkEndpoint(parsed, settings.EXPORTD_ALLOW_PRIVATE_ENDPOINTS);
  checkPairs(parsed);
  checkCredentials(parsed, settings.EXPORTD_ALLOW_AWS_CREDENTIAL_CHAIN);
  return { ...parsed, ...format };
}

function checkPrefix({ prefix }: Members): void {
  const fault = prefixProblem(prefix) ?? keyLengthProblem(prefix);
  if (fault !== null) throw rejectField('prefix', fault);
}

function checkEndpoint({ endpoint_url }: Members, allowed: AllowedPrivate): void {
  const fault = endpoint_url === null ? null : endpointProblem(endpoint_url, allowed);
  if (fault !== null) throw rejectField('endpoint_url', `The endpoint_url is refused: ${fault}.`);
}

function checkCredentials({ aws_access_key_id, role_arn }: Members, allowMachine: boolean): void {
  if (aws_access_key_id === undefined && role_arn === null && !allowMachine)
    throw new CommandRejected(
      'required',
      'This installation has no credentials of its own to write with; set aws_access_key_id and aws_secret_access_key, or role_arn.',
      configAttribute('aws_access_key_id'),
    );
}

function checkPairs(config: Members): void {
  const [missing] = secretFields.filter((field) => config[field] === undefined);
  if (missing !== undefined && secretFields.some((field) => config[field] !== undefined))
    throw rejectField(missing, `Configuration missing required field: '${missing}'`);
  if (config.external_id !== null && config.role_arn === null)
    throw rejectField('external_id', "The field 'external_id' needs a 'role_arn'.");
  if (config.kms_key_id !== null && config.encryption !== 'aws:kms')
    throw rejectField('kms_key_id', "The field 'kms_key_id' needs 'encryption' to be 'aws:kms'.");
}
