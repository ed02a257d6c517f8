import { SecretUnreadable, type KeyRing } from '../config/key_ring.ts';
import { inTransaction, type Connection, type Pool } from '../journal/database.ts';
import {
  destinationType,
  parseS3Config,
  requireDestinationType,
  secretFields,
  type DestinationSettings,
} from './config.ts';
import { rejectField } from './config_fields.ts';
import { serverOf } from './keys.ts';

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

/** Decrypts the secrets of a config. Only activities call this: the HTTP API only compares. @throws SecretUnreadable */
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

/** How many secrets were encrypted again, and which could not be. */
interface SecretRotation {
  readonly rotated: number;
  /** What each unreadable secret belongs to, and why it is unreadable. */
  readonly unreadable: readonly string[];
}

/** A stored secret, and what it belongs to. */
export interface StoredSecret {
  readonly owner: string;
  readonly sealed: string;
  readonly location: string;
}

/** Reads all secrets of config versions. */
export async function listConfigSecrets(pool: Pool): Promise<StoredSecret[]> {
  const { rows } = await pool.query<{ id: string; version: number; field: string; sealed: string }>(
    `select batch_export_id as id, version, field, sealed
     from exportd.destination_configs, jsonb_each_text(secrets) as secret (field, sealed)
     order by batch_export_id, version, field`,
  );
  return rows.map(({ id, version, field, sealed }) => ({
    owner: `${field} of batch export ${id}, config version ${version}`,
    sealed,
    location: secretContext(id, field),
  }));
}

/**
 * Encrypts the secrets of all config versions under the first key of the ring. A secret that several versions of an export
 * share stays the same in all of them, so that their difference still shows which fields were changed.
 */
export async function rotateConfigSecrets(pool: Pool, keyRing: KeyRing): Promise<SecretRotation> {
  const { rows } = await pool.query<{ batch_export_id: string }>(
    `select distinct batch_export_id
     from exportd.destination_configs, jsonb_each_text(secrets) as secret (field, sealed)
     where not starts_with(sealed, $1)
     order by batch_export_id`,
    [`${keyRing.keyId}:`],
  );
  let rotated = 0;
  const unreadable: string[] = [];
  for (const { batch_export_id } of rows) {
    const result = await inTransaction(pool, (connection) =>
      rotateExport(connection, keyRing, batch_export_id),
    );
    rotated += result.rotated;
    unreadable.push(...result.unreadable);
  }
  return { rotated, unreadable };
}

async function rotateExport(
  connection: Connection,
  keyRing: KeyRing,
  batchExportId: string,
): Promise<SecretRotation> {
  const { rows } = await connection.query<{ version: number; secrets: SealedSecrets }>(
    'select version, secrets from exportd.destination_configs where batch_export_id = $1 order by version for update',
    [batchExportId],
  );
  const resealed = new Map<string, string>();
  const unreadable: string[] = [];
  let rotated = 0;
  const reseal = (field: string, sealed: string, version: number): string => {
    if (sealed.startsWith(`${keyRing.keyId}:`)) return sealed;
    const known = resealed.get(`${field}/${sealed}`);
    if (known !== undefined) return known;
    try {
      const context = secretContext(batchExportId, field);
      const again = keyRing.seal(keyRing.open(sealed, context), context);
      resealed.set(`${field}/${sealed}`, again);
      return again;
    } catch (error) {
      if (!(error instanceof SecretUnreadable)) throw error;
      unreadable.push(
        `${field} of batch export ${batchExportId}, config version ${version}: ${error.message}`,
      );
      return sealed;
    }
  };
  for (const { version, secrets } of rows) {
    const entries = Object.entries(secrets).map(
      ([field, sealed]) => [field, reseal(field, sealed, version)] as const,
    );
    const changed = entries.filter(([field, sealed]) => sealed !== secrets[field]).length;
    if (changed === 0) continue;
    rotated += changed;
    await connection.query(
      'update exportd.destination_configs set secrets = $3 where batch_export_id = $1 and version = $2',
      [batchExportId, version, JSON.stringify(Object.fromEntries(entries))],
    );
  }
  return { rotated, unreadable };
}
