import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { KeyRing } from '../config/key_ring.ts';
import type { Connection, Pool } from '../journal/database.ts';
import type { RowQuery } from '../source/row_query/row_query.ts';
import { destinationTypeOf } from './registry.ts';
import {
  changedSecrets,
  mergeSealed,
  openSealed,
  sealConfig,
  type ConfigStore,
  type PublicConfig,
  type SealedConfig,
} from './sealed_config.ts';

/** A stored config version with encrypted secrets. */
export interface StoredConfig extends SealedConfig {
  /** The export's query, which selects the columns of the files; null exports the model's columns. */
  readonly row_query: RowQuery | null;
}

/** The export has no such config version. */
export class ConfigVersionNotFound extends Error {
  override readonly name = 'ConfigVersionNotFound';
}

/**
 * Validates a config from a request and stores it as the next version of the export. Versions are immutable: a run
 * keeps the version it was created with.
 * @param connection inside a transaction, so that the version exists only if its command is committed.
 * @returns the version number, from 1.
 * @throws CommandRejected with the invalid field
 */
export async function storeConfig(
  connection: Connection,
  store: ConfigStore,
  input: {
    batch_export_id: string;
    destination_type: string;
    config: unknown;
    row_query?: RowQuery | null;
  },
): Promise<number> {
  const { batch_export_id, row_query = null } = input;
  const sealed = sealConfig(store, batch_export_id, input);
  return insertVersion(connection, batch_export_id, { ...sealed, row_query });
}

/**
 * Stores a new version: an older one with the given fields changed.
 * @returns the new version number.
 * @throws CommandRejected with the invalid field; ConfigVersionNotFound
 */
export async function mergeConfig(
  connection: Connection,
  store: ConfigStore,
  input: {
    batch_export_id: string;
    base_version: number;
    config: Readonly<Record<string, unknown>>;
    /** Defaults to the query of the older version. */
    row_query?: RowQuery | null | undefined;
  },
): Promise<number> {
  const { batch_export_id, base_version, config } = input;
  const base = await readStoredConfig(connection, batch_export_id, base_version);
  const { row_query = base.row_query } = input;
  const merged = mergeSealed(store, batch_export_id, base, config);
  return insertVersion(connection, batch_export_id, { ...merged, row_query });
}

/**
 * The fields of a version that the given ones change. Compares secrets too, so that sending them again changes nothing.
 * @throws CommandRejected with the invalid field; ConfigVersionNotFound
 */
export async function changedConfigFields(
  connection: Connection,
  store: ConfigStore,
  input: {
    readonly batch_export_id: string;
    readonly base_version: number;
    readonly config: Readonly<Record<string, unknown>>;
  },
): Promise<string[]> {
  const { batch_export_id, base_version, config } = input;
  const base = await readStoredConfig(connection, batch_export_id, base_version);
  const merged = mergeSealed(store, batch_export_id, base, config);
  // Versions of older releases lack fields that were added since.
  const before = { ...destinationTypeOf(base.destination_type).defaultFields, ...base.config };
  const fields = new Set([...Object.keys(before), ...Object.keys(merged.config)]);
  const changed = [...fields].filter(
    (field) => !isDeepStrictEqual(before[field] ?? null, merged.config[field] ?? null),
  );
  return [...changed, ...changedSecrets(store.keyRing, batch_export_id, base, merged)];
}

/** Reads a version without its secrets, for API responses. @throws ConfigVersionNotFound */
export async function readPublicConfig(
  database: Pool | Connection,
  batchExportId: string,
  version: number,
): Promise<PublicConfig & Pick<StoredConfig, 'row_query'>> {
  const { destination_type, config, row_query } = await readStoredConfig(database, batchExportId, version);
  return { destination_type, config, row_query };
}

/**
 * Reads a version with decrypted secrets. Only activities call this.
 * @throws ConfigVersionNotFound, SecretUnreadable
 */
export async function readConfig(
  database: Pool | Connection,
  keyRing: KeyRing,
  batchExportId: string,
  version: number,
): Promise<PublicConfig> {
  return openSealed(keyRing, batchExportId, await readStoredConfig(database, batchExportId, version));
}

/** Reads a version with encrypted secrets. @throws ConfigVersionNotFound */
export async function readStoredConfig(
  database: Pool | Connection,
  batchExportId: string,
  version: number,
): Promise<StoredConfig> {
  const { rows } = await database.query<StoredConfig>(
    `select destination_type, config, secrets, row_query from exportd.destination_configs
     where batch_export_id = $1 and version = $2`,
    [batchExportId, version],
  );
  const [found] = rows;
  if (!found)
    throw new ConfigVersionNotFound(`Batch export ${batchExportId} has no config version ${version}.`);
  return found;
}

/** Two configs with equal hashes select the same rows. */
function selectionHashOf({ destination_type, config, row_query }: StoredConfig): string {
  const selection = { ...destinationTypeOf(destination_type).selectionOf(config), query: row_query };
  return createHash('sha256').update(JSON.stringify(selection)).digest('base64url');
}

async function insertVersion(
  connection: Connection,
  batchExportId: string,
  row: StoredConfig,
): Promise<number> {
  // Serializes writers of one export. The statement after the lock sees what the other writer committed.
  await connection.query(`select pg_advisory_xact_lock(hashtextextended('destination_configs/' || $1, 0))`, [
    batchExportId,
  ]);
  const { rows } = await connection.query<{ version: number }>(
    `insert into exportd.destination_configs (batch_export_id, version, destination_type, config, secrets, row_query,
       selection_hash, circuit)
     select $1::uuid, coalesce(max(version), 0) + 1, $2, $3, $4, $5, $6, $7
     from exportd.destination_configs where batch_export_id = $1::uuid
     returning version`,
    [
      batchExportId,
      row.destination_type,
      JSON.stringify(row.config),
      JSON.stringify(row.secrets),
      row.row_query && JSON.stringify(row.row_query),
      selectionHashOf(row),
      destinationTypeOf(row.destination_type).circuitOf(row.config),
    ],
  );
  return rows[0]?.version ?? 0;
}
