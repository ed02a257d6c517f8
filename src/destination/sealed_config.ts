import type { KeyRing } from '../config/key_ring.ts';
import type { DestinationSettings } from './destination.ts';
import { rejectField } from './config_fields.ts';
import { destinationTypeOf } from './registry.ts';

type Members = Readonly<Record<string, unknown>>;
type SealedSecrets = Readonly<Record<string, string>>;

/** What storing a config needs besides the config. */
export interface ConfigStore {
  readonly keyRing: KeyRing;
  readonly settings: DestinationSettings;
}

/** A stored version as it may be shown: without its secrets. */
export interface PublicConfig {
  readonly destination_type: string;
  readonly config: Members;
}

/** A checked config as it is stored, its secrets encrypted one by one. */
export interface SealedConfig extends PublicConfig {
  readonly secrets: SealedSecrets;
}

/** Stands for a secret that is kept when a merged config is checked; the schema only asks whether it is there. */
const keptSecret = 'kept';

/**
 * Checks a config as a user sent it and seals its secrets.
 * @param owner id of the export, or of whatever else the secrets are for; they open nowhere else.
 * @throws CommandRejected that names the member at fault.
 */
export function sealConfig(
  { keyRing, settings }: ConfigStore,
  owner: string,
  given: { readonly destination_type: string; readonly config: unknown },
): SealedConfig {
  const type = destinationTypeOf(given.destination_type);
  const parsed = type.parseConfig(given.config, settings);
  return {
    destination_type: type.name,
    config: without(parsed, type.secretFields),
    secrets: sealSecrets(keyRing, owner, parsed, type.secretFields),
  };
}

/**
 * A config made of another one and the members that are given: those replace, null resets a member to its default,
 * those left out survive. Secrets that are left out are copied sealed; nothing is decrypted. They are for the same server
 * alone, so that who may edit an export cannot have them sent elsewhere.
 * @throws CommandRejected that names the member at fault.
 */
export function mergeSealed(
  { keyRing, settings }: ConfigStore,
  owner: string,
  base: SealedConfig,
  given: Members,
): SealedConfig {
  const type = destinationTypeOf(base.destination_type);
  const keptSecrets = without(base.secrets, Object.keys(given));
  const standIns = Object.fromEntries(Object.keys(keptSecrets).map((field) => [field, keptSecret]));
  const parsed = type.parseConfig({ ...base.config, ...standIns, ...given }, settings);
  const [kept] = Object.keys(keptSecrets);
  if (kept !== undefined && type.serverOf(parsed) !== type.serverOf(base.config))
    throw rejectField(kept, `Another server needs '${kept}' to be given again.`);
  const newSecrets = without(parsed, Object.keys(keptSecrets));
  return {
    destination_type: type.name,
    config: without(parsed, type.secretFields),
    secrets: { ...keptSecrets, ...sealSecrets(keyRing, owner, newSecrets, type.secretFields) },
  };
}

/** A config with its secrets in clear. Only activities call this. @throws SecretUnreadable */
export function openSealed(keyRing: KeyRing, owner: string, sealed: SealedConfig): PublicConfig {
  const opened: Record<string, string> = {};
  for (const [field, secret] of Object.entries(sealed.secrets))
    opened[field] = keyRing.open(secret, secretPlace(owner, field));
  return { destination_type: sealed.destination_type, config: { ...sealed.config, ...opened } };
}

/** What a sealed secret is bound to, so that it opens nowhere else. */
const secretPlace = (owner: string, field: string): string => `${owner}/${field}`;

function sealSecrets(
  keyRing: KeyRing,
  owner: string,
  config: Members,
  fields: readonly string[],
): SealedSecrets {
  const sealed: Record<string, string> = {};
  for (const field of fields) {
    const secret = config[field];
    if (typeof secret === 'string') sealed[field] = keyRing.seal(secret, secretPlace(owner, field));
  }
  return sealed;
}

const without = <Value>(
  fields: Readonly<Record<string, Value>>,
  names: readonly string[],
): Record<string, Value> =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));
