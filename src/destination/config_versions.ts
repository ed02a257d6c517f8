import type { KeyRing } from '../config/key_ring.ts';
import type { Connection, Pool } from '../journal/database.ts';
import type { DestinationSettings } from './destination.ts';
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

interface StoredVersion extends PublicConfig {
  readonly secrets: SealedSecrets;
}

/** There is no such version of an export's config. */
export class ConfigMissing extends Error {
  override readonly name = 'ConfigMissing';
}

/** Stands for a secret that is kept when a merged config is checked; the schema only asks whether it is there. */
const keptSecret = 'kept';

/**
 * Checks a config as a user sent it and stores it as the export's next version. Versions are never changed: a run
 * keeps the one it was opened with.
 * @param connection inside a transaction, so that the version is there only if the command that names it is.
 * @returns the number of the version, from 1.
 * @throws CommandRefused that names the member at fault.
 */
export async function storeConfig(
  connection: Connection,
  store: ConfigStore,
  given: { batch_export_id: string; destination_type: string; config: unknown },
): Promise<number> {
  const type = destinationTypeOf(given.destination_type);
  const parsed = type.parseConfig(given.config, store.settings);
  const secrets = sealSecrets(store.keyRing, given.batch_export_id, parsed, type.secretMembers);
  return insertVersion(connection, given.batch_export_id, {
    destination_type: type.name,
    config: without(parsed, type.secretMembers),
    secrets,
  });
}

/**
 * Stores a new version made of an older one and the members that are given: those replace, null resets a member to its
 * default, those left out survive. Secrets that are left out are copied sealed; nothing is decrypted.
 * @returns the number of the new version.
 * @throws CommandRefused that names the member at fault; ConfigMissing.
 */
export async function mergeConfig(
  connection: Connection,
  store: ConfigStore,
  given: { batch_export_id: string; base_version: number; config: Members },
): Promise<number> {
  const base = await readVersion(connection, given.batch_export_id, given.base_version);
  const type = destinationTypeOf(base.destination_type);
  const keptSecrets = without(base.secrets, Object.keys(given.config));
  const standIns = Object.fromEntries(Object.keys(keptSecrets).map((member) => [member, keptSecret]));
  const parsed = type.parseConfig({ ...base.config, ...standIns, ...given.config }, store.settings);
  const newSecrets = without(parsed, Object.keys(keptSecrets));
  return insertVersion(connection, given.batch_export_id, {
    destination_type: type.name,
    config: without(parsed, type.secretMembers),
    secrets: {
      ...keptSecrets,
      ...sealSecrets(store.keyRing, given.batch_export_id, newSecrets, type.secretMembers),
    },
  });
}

/** A version without its secrets, for answers of the interface. @throws ConfigMissing */
export async function readPublicConfig(
  database: Pool | Connection,
  batchExportId: string,
  version: number,
): Promise<PublicConfig> {
  const { destination_type, config } = await readVersion(database, batchExportId, version);
  return { destination_type, config };
}

/** A version with its secrets in clear. Only activities call this. @throws ConfigMissing, SecretUnreadable */
export async function readConfig(
  database: Pool | Connection,
  keyRing: KeyRing,
  batchExportId: string,
  version: number,
): Promise<PublicConfig> {
  const { destination_type, config, secrets } = await readVersion(database, batchExportId, version);
  const opened: Record<string, string> = {};
  for (const [member, sealed] of Object.entries(secrets))
    opened[member] = keyRing.open(sealed, secretPlace(batchExportId, member));
  return { destination_type, config: { ...config, ...opened } };
}

/** What a sealed secret is bound to, so that it opens nowhere else. */
const secretPlace = (batchExportId: string, member: string): string => `${batchExportId}/${member}`;

function sealSecrets(
  keyRing: KeyRing,
  batchExportId: string,
  config: Members,
  members: readonly string[],
): SealedSecrets {
  const sealed: Record<string, string> = {};
  for (const member of members) {
    const secret = config[member];
    if (typeof secret === 'string') sealed[member] = keyRing.seal(secret, secretPlace(batchExportId, member));
  }
  return sealed;
}

const without = <Value>(
  members: Readonly<Record<string, Value>>,
  names: readonly string[],
): Record<string, Value> =>
  Object.fromEntries(Object.entries(members).filter(([name]) => !names.includes(name)));

async function readVersion(
  database: Pool | Connection,
  batchExportId: string,
  version: number,
): Promise<StoredVersion> {
  const { rows } = await database.query<StoredVersion>(
    `select destination_type, config, secrets from exportd.destination_configs
     where batch_export_id = $1 and version = $2`,
    [batchExportId, version],
  );
  const [found] = rows;
  if (!found)
    throw new ConfigMissing(`There is no version ${version} of the config of batch export ${batchExportId}.`);
  return found;
}

async function insertVersion(
  connection: Connection,
  batchExportId: string,
  row: StoredVersion,
): Promise<number> {
  // Two writers of one export take turns; the statement after the lock sees what the other one committed.
  await connection.query(`select pg_advisory_xact_lock(hashtextextended('destination_configs/' || $1, 0))`, [
    batchExportId,
  ]);
  const { rows } = await connection.query<{ version: number }>(
    `insert into exportd.destination_configs (batch_export_id, version, destination_type, config, secrets)
     select $1::uuid, coalesce(max(version), 0) + 1, $2, $3, $4
     from exportd.destination_configs where batch_export_id = $1::uuid
     returning version`,
    [batchExportId, row.destination_type, JSON.stringify(row.config), JSON.stringify(row.secrets)],
  );
  return rows[0]?.version ?? 0;
}
