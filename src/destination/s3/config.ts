import { z } from 'zod';
import type { Settings } from '../../config/settings.ts';
import { givenMembers, parseMembers, refuseMember } from '../config_members.ts';
import { endpointFault } from './endpoint.ts';
import { keyLengthFault } from './keys.ts';
import { prefixFault } from './prefix.ts';

const oneOf = <Value extends string>(what: string, values: readonly [Value, ...Value[]]) =>
  z.enum(values, {
    error: `${what} is not supported. Supported are: ${values.map((value) => `'${value}'`).join(', ')}.`,
  });

const text = (member: string) => z.string().min(1, `The following inputs are empty: ['${member}']`);

const configSchema = z.strictObject({
  // Both names become part of a host name, so they are held to what can stand in one.
  bucket_name: text('bucket_name').regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]$/,
    'The bucket_name is not a name that a bucket can have.',
  ),
  region: text('region').regex(/^[A-Za-z0-9-]{1,63}$/, 'The region is not the name of a region.'),
  prefix: z.string(),
  aws_access_key_id: text('aws_access_key_id').optional(),
  aws_secret_access_key: text('aws_secret_access_key').optional(),
  endpoint_url: z
    .string()
    .nullable()
    .default(null)
    .transform((url) => (url === '' ? null : url)),
  use_virtual_style_addressing: z.boolean().default(false),
  file_format: oneOf('This file format', ['JSONLines']).default('JSONLines'),
  compression: oneOf('This compression of JSONLines', ['gzip']).nullable().default(null),
  encryption: oneOf('This encryption', ['AES256', 'aws:kms']).nullable().default(null),
  kms_key_id: z.string().nullable().default(null),
});

/** A checked config of an S3 destination, secrets included. */
export type S3Config = Readonly<z.infer<typeof configSchema>>;

/** The members that are stored encrypted and never returned. */
export const secretMembers = ['aws_access_key_id', 'aws_secret_access_key'] as const;

/** Members of the documented config that mean something this version does not do yet, and the value that means nothing. */
const notYet: Readonly<Record<string, (value: unknown) => boolean>> = {
  include_events: isEmptyList,
  exclude_events: isEmptyList,
  filters: isEmptyList,
  max_file_size_mb: (value) => value === 0,
  on_bad_row: (value) => value === 'fail',
  role_arn: (value) => value === '',
  external_id: (value) => value === '',
};

/**
 * Checks an S3 config as a user sent it and fills in defaults; null stands for a member's default.
 * @throws CommandRefused that names the member at fault.
 */
export function parseS3Config(
  config: unknown,
  settings: Pick<Settings, 'EXPORTD_ALLOW_PRIVATE_ENDPOINTS'>,
): S3Config {
  const given = givenMembers(config);
  for (const [member, meansNothing] of Object.entries(notYet))
    if (member in given && !meansNothing(given[member]))
      throw refuseMember(member, `The field '${member}' is not supported yet; leave it out.`);
  const meant = Object.fromEntries(Object.entries(given).filter(([member]) => !(member in notYet)));
  const parsed = parseMembers(configSchema, meant);
  checkPrefix(parsed);
  checkEndpoint(parsed, settings.EXPORTD_ALLOW_PRIVATE_ENDPOINTS);
  checkPairs(parsed);
  return parsed;
}

function checkPrefix({ prefix }: S3Config): void {
  const fault = prefixFault(prefix) ?? keyLengthFault(prefix);
  if (fault !== null) throw refuseMember('prefix', fault);
}

function checkEndpoint({ endpoint_url }: S3Config, allowPrivate: boolean): void {
  const fault = endpoint_url === null ? null : endpointFault(endpoint_url, allowPrivate);
  if (fault !== null) throw refuseMember('endpoint_url', `The endpoint_url is refused: ${fault}.`);
}

function checkPairs(config: S3Config): void {
  const [missing] = secretMembers.filter((member) => config[member] === undefined);
  if (missing !== undefined && secretMembers.some((member) => config[member] !== undefined))
    throw refuseMember(missing, `Configuration missing required field: '${missing}'`);
  if (config.kms_key_id !== null && config.encryption !== 'aws:kms')
    throw refuseMember('kms_key_id', "The field 'kms_key_id' needs 'encryption' to be 'aws:kms'.");
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}
