import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { KeyRing } from '../config/key_ring.ts';
import type { RunSpec } from '../domain/run_state.ts';
import type { Connection, Pool } from '../journal/database.ts';
import type { RowQuery, RowSelection } from '../source/row_selection.ts';
import { defaultFields, followsSource, secretFields, selectionOf } from './config.ts';
import { DestinationError } from './destination.ts';
import { locationOf } from './keys.ts';
import { circuitOf } from './requests.ts';
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
interface StoredConfig extends SealedConfig {
  /** The export's query, which selects the columns of the files; null exports the model's columns. */
  readonly row_query: RowQuery | null;
  readonly secrets_erased: boolean;
}

/** The secrets of a config version were erased, and no later version leads to its bucket. */
export class SecretsErased extends DestinationError {
  constructor(version: number) {
    super(
      'SecretsErased',
      `The access keys of config version ${version} were erased, because the export was deleted or writes to another bucket now.`,
      { transient: false },
    );
  }
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
  const before = { ...defaultFields, ...base.config };
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
 * Reads a version with decrypted secrets. Once they were erased, it has the credentials of the newest version that leads to
 * the same bucket. Only activities call this.
 * @throws ConfigVersionNotFound, SecretUnreadable, SecretsErased
 */
export async function readConfig(
  database: Pool | Connection,
  keyRing: KeyRing,
  batchExportId: string,
  version: number,
): Promise<PublicConfig> {
  const stored = await readStoredConfig(database, batchExportId, version);
  if (!stored.secrets_erased) return openSealed(keyRing, batchExportId, stored);
  const { rows } = await database.query<StoredConfig>(
    `select ${storedColumns} from exportd.destination_configs
     where batch_export_id = $1 and secrets_erased_at is null order by version desc`,
    [batchExportId],
  );
  const newest = rows.find(({ config }) => locationOf(config) === locationOf(stored.config));
  if (!newest) throw new SecretsErased(version);
  const { destination_type, config } = openSealed(keyRing, batchExportId, newest);
  return {
    destination_type,
    config: {
      ...stored.config,
      ...Object.fromEntries(Object.entries(config).filter(([field]) => credentialFields.has(field))),
    },
  };
}

/** The fields that say how to reach a bucket and who asks. */
const credentialFields: ReadonlySet<string> = new Set([
  ...['region', 'endpoint_url', 'use_virtual_style_addressing', 'role_arn', 'external_id'],
  ...secretFields,
]);

const storedColumns =
  'destination_type, config, secrets, row_query, secrets_erased_at is not null as secrets_erased';

/** Reads a version with encrypted secrets. @throws ConfigVersionNotFound */
export async function readStoredConfig(
  database: Pool | Connection,
  batchExportId: string,
  version: number,
): Promise<StoredConfig> {
  const { rows } = await database.query<StoredConfig>(
    `select ${storedColumns} from exportd.destination_configs where batch_export_id = $1 and version = $2`,
    [batchExportId, version],
  );
  const [found] = rows;
  if (!found)
    throw new ConfigVersionNotFound(`Batch export ${batchExportId} has no config version ${version}.`);
  return found;
}

/** Two configs with equal hashes select the same rows. */
function selectionHashOf({ config, row_query }: Pick<StoredConfig, 'config' | 'row_query'>): string {
  const selection = { ...selectionOf(config), query: row_query };
  return createHash('sha256').update(JSON.stringify(selection)).digest('base64url');
}

async function insertVersion(
  connection: Connection,
  batchExportId: string,
  row: Omit<StoredConfig, 'secrets_erased'>,
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
      circuitOf(row.config),
    ],
  );
  return rows[0]?.version ?? 0;
}

/** Reads the selection of a run, which its config version determines. */
export type ReadSelection = (
  spec: Pick<RunSpec, 'batch_export_id' | 'config_version'>,
) => Promise<RowSelection>;

/** Number of cached selections. Each step of a run reads the selection of its config version. */
const cacheSize = 1_000;

/**
 * Reads selections from stored configs, without decrypting secrets. Config versions are immutable, so selections are
 * cached.
 */
export function createSelectionReader(pool: Pool): ReadSelection {
  const selections = new Map<string, RowSelection>();
  return async ({ batch_export_id, config_version }) => {
    const key = `${batch_export_id}/${config_version}`;
    const known = selections.get(key);
    if (known) return known;
    const selection = selectionOfConfig(await readPublicConfig(pool, batch_export_id, config_version));
    selections.set(key, selection);
    const [oldest] = selections.keys();
    if (selections.size > cacheSize && oldest !== undefined) selections.delete(oldest);
    return selection;
  };
}

/** The selection of a stored config version. */
export const selectionOfConfig = ({
  config,
  row_query,
}: PublicConfig & Pick<StoredConfig, 'row_query'>): RowSelection => ({
  ...selectionOf(config),
  query: row_query,
});

/**
 * Whether two runs of an export write to the same bucket, so that a manifest of one can name files of the other.
 * @throws ConfigVersionNotFound
 */
export async function areInSameBucket(
  database: Pool | Connection,
  one: Pick<RunSpec, 'batch_export_id' | 'config_version'>,
  other: Pick<RunSpec, 'config_version'>,
): Promise<boolean> {
  if (one.config_version === other.config_version) return true;
  const first = await readPublicConfig(database, one.batch_export_id, one.config_version);
  const second = await readPublicConfig(database, one.batch_export_id, other.config_version);
  return locationOf(first.config) === locationOf(second.config);
}

/** Whether a run may publish fewer rows than the manifest that it replaces. */
export type MayShrink = (
  spec: Pick<RunSpec, 'batch_export_id' | 'config_version' | 'allow_shrink'>,
) => Promise<boolean>;

/**
 * Creates a function that decides by the request of the run (`allow_shrink`) and by its config version
 * (`on_missing_rows: 'follow'`). It throws ConfigVersionNotFound.
 */
export const createMayShrink =
  (database: Pool | Connection): MayShrink =>
  async ({ batch_export_id, config_version, allow_shrink }) =>
    allow_shrink || followsSource((await readPublicConfig(database, batch_export_id, config_version)).config);
