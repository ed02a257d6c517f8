import { SecretUnreadable, type KeyRing } from '../config/key_ring.ts';
import type { DestinationSettings } from './destination_type.ts';
import { rejectField } from './config_fields.ts';
import { destinationTypeOf } from './registry.ts';

type Fields = Readonly<Record<string, unknown>>;
type SealedSecrets = Readonly<Record<string, string>>;

/** Dependencies for storing a config. */
export interface ConfigStore {
  readonly keyRing: KeyRing;
  readonly settings: DestinationSettings;
}

/** A stored config version without its secrets. */
export interface PublicConfig {
  readonly destination_type: string;
  readonly config: Fields;
}

/** A validated config for storage. Each secret is encrypted separately. */
export interface SealedConfig extends PublicConfig {
  readonly secrets: SealedSecrets;
}

/** Placeholder for a kept secret while a merged config is validated. The schema only checks that it is present. */
const keptSecretPlaceholder = 'kept';

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
  const type = destinationTypeOf(input.destination_type);
  const parsed = type.parseConfig(input.config, settings);
  return {
    destination_type: type.name,
    config: without(parsed, type.secretFields),
    secrets: sealSecrets(keyRing, owner, parsed, type.secretFields),
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
  const type = destinationTypeOf(base.destination_type);
  const keptSecrets = without(base.secrets, Object.keys(input));
  const placeholders = Object.fromEntries(
    Object.keys(keptSecrets).map((field) => [field, keptSecretPlaceholder]),
  );
  const parsed = type.parseConfig({ ...base.config, ...placeholders, ...input }, settings);
  const [kept] = Object.keys(keptSecrets);
  if (kept !== undefined && type.serverOf(parsed) !== type.serverOf(base.config))
    throw rejectField(kept, `Set '${kept}' again, because the server changes.`);
  const newSecrets = without(parsed, Object.keys(keptSecrets));
  return {
    destination_type: type.name,
    config: without(parsed, type.secretFields),
    secrets: { ...keptSecrets, ...sealSecrets(keyRing, owner, newSecrets, type.secretFields) },
  };
}

/** Decrypts the secrets of a config. Only activities call this: the HTTP API only compares. @throws SecretUnreadable */
export function openSealed(keyRing: KeyRing, owner: string, sealed: SealedConfig): PublicConfig {
  const opened: Record<string, string> = {};
  for (const [field, secret] of Object.entries(sealed.secrets))
    opened[field] = keyRing.open(secret, secretContext(owner, field));
  return { destination_type: sealed.destination_type, config: { ...sealed.config, ...opened } };
}

/** Encrypts a secret of a config again, under the first key. @throws SecretUnreadable */
export const resealField = (keyRing: KeyRing, owner: string, field: string, sealed: string): string =>
  keyRing.seal(keyRing.open(sealed, secretContext(owner, field)), secretContext(owner, field));

/** The secrets that differ between two configs of one owner. A secret that cannot be decrypted differs. */
export function changedSecrets(
  keyRing: KeyRing,
  owner: string,
  one: SealedConfig,
  other: SealedConfig,
): string[] {
  const open = ({ secrets }: SealedConfig, field: string): string | undefined => {
    const sealed = secrets[field];
    return sealed === undefined ? undefined : keyRing.open(sealed, secretContext(owner, field));
  };
  const isEqual = (field: string): boolean => {
    // A kept secret has the same text; a replaced one never has, since each encryption differs.
    if (one.secrets[field] === other.secrets[field]) return true;
    try {
      return open(one, field) === open(other, field);
    } catch (error) {
      if (error instanceof SecretUnreadable) return false;
      throw error;
    }
  };
  const fields = new Set([...Object.keys(one.secrets), ...Object.keys(other.secrets)]);
  return [...fields].filter((field) => !isEqual(field));
}

/** The context that an encrypted secret is bound to. */
const secretContext = (owner: string, field: string): string => `${owner}/${field}`;

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
