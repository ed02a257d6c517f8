/** A config whose secrets are encrypted, as it is stored. */
import { type KeyRing, SecretUnreadable } from '../config/key_ring.ts';
import {
  type DestinationSettings,
  destinationType,
  parseS3Config,
  requireDestinationType,
  secretFields,
} from './config.ts';
import { rejectField } from './config_fields.ts';
import { serverOf } from './bucket_location.ts';

export type Fields = Readonly<Record<string, unknown>>;
type SealedSecrets = Readonly<Record<string, string>>;

/** A stored config version without its secrets. */
export interface PublicConfig {
  readonly destination_type: string;
  readonly config: Fields;
}

/** A validated config for storage. Each secret is encrypted separately. */
export interface SealedConfig extends PublicConfig {
  readonly secrets: SealedSecrets;
}

/**
 * Validates a config from a request and encrypts its secrets.
 * @param owner the id of the export or test; secrets cannot be decrypted for another owner.
 * @throws CommandRejected with the invalid field
 */
export function sealConfig(
  { keyRing, settings }: ConfigStore,
  owner: string,
  input: { readonly destination_type: string; readonly config: unknown },
): SealedConfig {
  requireDestinationType(input.destination_type);
  const parsed = parseS3Config(input.config, settings);
  return {
    destination_type: destinationType,
    config: without(parsed, secretFields),
    secrets: sealSecrets(keyRing, owner, parsed, secretFields),
  };
}

/**
 * Merges the given fields into a config: null resets a field to its default, omitted fields are kept. Omitted secrets
 * are copied without being decrypted. They may only be kept for the same server, so that editors of an export cannot
 * send them elsewhere.
 * @throws CommandRejected with the invalid field
 */
export function mergeSealed(
  { keyRing, settings }: ConfigStore,
  owner: string,
  base: SealedConfig,
  input: Fields,
): SealedConfig {
  const keptSecrets = without(base.secrets, Object.keys(input));
  // The schema only checks that a kept secret is present.
  const placeholders = Object.fromEntries(Object.keys(keptSecrets).map((field) => [field, 'kept']));
  const parsed = parseS3Config({ ...base.config, ...placeholders, ...input }, settings);
  const [kept] = Object.keys(keptSecrets);
  if (kept !== undefined && serverOf(parsed) !== serverOf(base.config))
    throw rejectField(kept, `Set '${kept}' again, because the server changes.`);
  const newSecrets = without(parsed, Object.keys(keptSecrets));
  return {
    destination_type: destinationType,
    config: without(parsed, secretFields),
    secrets: { ...keptSecrets, ...sealSecrets(keyRing, owner, newSecrets, secretFields) },
  };
}

/** Decrypts the secrets of a config. Activities call this; the HTTP API only compares, and shows the end of an access key ID. @throws SecretUnreadable */
export function openSealed(keyRing: KeyRing, owner: string, sealed: SealedConfig): PublicConfig {
  const opened: Record<string, string> = {};
  for (const [field, secret] of Object.entries(sealed.secrets))
    opened[field] = keyRing.open(secret, secretContext(owner, field));
  return { destination_type: sealed.destination_type, config: { ...sealed.config, ...opened } };
}

/** The secrets that differ between two configs of one owner. Secrets that cannot be compared differ. */
export function changedSecrets(
  keyRing: KeyRing,
  owner: string,
  one: SealedConfig,
  other: SealedConfig,
): string[] {
  const isEqual = (field: string): boolean => {
    const [before, after] = [one.secrets[field], other.secrets[field]];
    // A kept secret has the same text; a replaced one never has, since each encryption differs.
    if (before === after) return true;
    if (before === undefined || after === undefined) return false;
    try {
      return keyRing.isSame(before, after, secretContext(owner, field));
    } catch (error) {
      if (error instanceof SecretUnreadable) return false;
      throw error;
    }
  };
  const fields = new Set([...Object.keys(one.secrets), ...Object.keys(other.secrets)]);
  return [...fields].filter((field) => !isEqual(field));
}

/** The context that an encrypted secret is bound to. */
export const secretContext = (owner: string, field: string): string => `${owner}/${field}`;

function sealSecrets(
  keyRing: KeyRing,
  owner: string,
  config: Fields,
  fields: readonly string[],
): SealedSecrets {
  const sealed: Record<string, string> = {};
  for (const field of fields) {
    const secret = config[field];
    if (typeof secret === 'string') sealed[field] = keyRing.seal(secret, secretContext(owner, field));
  }
  return sealed;
}

const without = <Value>(
  fields: Readonly<Record<string, Value>>,
  names: readonly string[],
): Record<string, Value> =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));

/** Dependencies for storing a config. */
export interface ConfigStore {
  readonly keyRing: KeyRing;
  readonly settings: DestinationSettings;
}
