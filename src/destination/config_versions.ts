import type { KeyRing } from '../config/key_ring.ts';
import type { Connection, Pool } from '../journal/database.ts';
import type { RowQuery } from '../source/row_query/row_query.ts';
import { refuseInvalidPatterns } from './filter_patterns.ts';
import {
  mergeSealed,
  openSealed,
  sealConfig,
  type ConfigStore,
  type PublicConfig,
  type SealedConfig,
} from './sealed_config.ts';

/** A stored version with its secrets as they are stored. */
export interface StoredConfig extends SealedConfig {
  /** The owner's query, which chooses the columns of the files; null for the model's own columns. */
  readonly row_query: RowQuery | null;
}

/** There is no such version of an export's config. */
export class ConfigVersionNotFound extends Error {
  override readonly name = 'ConfigVersionNotFound';
}

/**
 * Checks a config as a user sent it and stores it as the export's next version. Versions are never changed: a run
 * keeps the one it was opened with.
 * @param connection inside a transaction, so that the version is there only if the command that names it is.
 * @returns the number of the version, from 1.
 * @throws CommandRejected that names the member at fault.
 */
export async function storeConfig(
  connection: Connection,
  store: ConfigStore,
  given: {
    batch_export_id: string;
    destination_type: string;
    config: unknown;
    row_query?: RowQuery | null;
  },
): Promise<number> {
  const { batch_export_id, row_query = null } = given;
  const sealed = sealConfig(store, batch_export_id, given);
  await refuseInvalidPatterns(connection, sealed);
  return insertVersion(connection, batch_export_id, { ...sealed, row_query });
}

/**
 * Stores a new version made of an older one and the members that are given.
 * @returns the number of the new version.
 * @throws CommandRejected that names the member at fault; ConfigVersionNotFound.
 */
export async function mergeConfig(
  connection: Connection,
  store: ConfigStore,
  given: {
    batch_export_id: string;
    base_version: number;
    config: Readonly<Record<string, unknown>>;
    /** The older version's when it is not given. */
    row_query?: RowQuery | null | undefined;
  },
): Promise<number> {
  const { batch_export_id, base_version, config } = given;
  const base = await readStoredConfig(connection, batch_export_id, base_version);
  const { row_query = base.row_query } = given;
  const merged = mergeSealed(store, batch_export_id, base, config);
  await refuseInvalidPatterns(connection, merged);
  return insertVersion(connection, batch_export_id, { ...merged, row_query });
}

/** A version without its secrets, for answers of the interface. @throws ConfigVersionNotFound */
export async function readPublicConfig(
  database: Pool | Connection,
  batchExportId: string,
  version: number,
): Promise<PublicConfig & Pick<StoredConfig, 'row_query'>> {
  const { destination_type, config, row_query } = await readStoredConfig(database, batchExportId, version);
  return { destination_type, config, row_query };
}

/** A version with its secrets in clear. Only activities call this. @throws ConfigVersionNotFound, SecretUnreadable */
export async function readConfig(
  database: Pool | Connection,
  keyRing: KeyRing,
  batchExportId: string,
  version: number,
): Promise<PublicConfig> {
  return openSealed(keyRing, batchExportId, await readStoredConfig(database, batchExportId, version));
}

/** A version with its secrets as they are stored. @throws ConfigVersionNotFound */
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
    throw new ConfigVersionNotFound(
      `There is no version ${version} of the config of batch export ${batchExportId}.`,
    );
  return found;
}

async function insertVersion(
  connection: Connection,
  batchExportId: string,
  row: StoredConfig,
): Promise<number> {
  // Two writers of one export take turns; the statement after the lock sees what the other one committed.
  await connection.query(`select pg_advisory_xact_lock(hashtextextended('destination_configs/' || $1, 0))`, [
    batchExportId,
  ]);
  const { rows } = await connection.query<{ version: number }>(
    `insert into exportd.destination_configs (batch_export_id, version, destination_type, config, secrets, row_query)
     select $1::uuid, coalesce(max(version), 0) + 1, $2, $3, $4, $5
     from exportd.destination_configs where batch_export_id = $1::uuid
     returning version`,
    [
      batchExportId,
      row.destination_type,
      JSON.stringify(row.config),
      JSON.stringify(row.secrets),
      row.row_query && JSON.stringify(row.row_query),
    ],
  );
  return rows[0]?.version ?? 0;
}
