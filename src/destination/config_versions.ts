import { BoundedMap } from '../concurrency/bounded_map.ts';
import { createHash } from 'node:crypto';
import type { KeyRing, StoredSecret } from '../config/key_ring.ts';
import type { RunSpec } from '../domain/run_state.ts';
import { type FieldChange, fieldChanges, secretChange } from '../journal/audit.ts';
import type { Connection, Pool } from '../journal/database.ts';
import type { RowQuery, RowSelection } from '../source/row_selection.ts';
import { defaultFields, followsSource, secretFields } from './config.ts';
import { DestinationError } from './destination.ts';
import { fileFolder } from './prefix.ts';
import { locationOf } from './bucket_location.ts';
import { partitionColumnsOf } from './partitions.ts';
import { circuitOf } from './requests.ts';
import { selectionOf } from './selection_config.ts';
import {
  changedSecrets,
  type ConfigStore,
  type Fields,
  mergeSealed,
  openSealed,
  type PublicConfig,
  sealConfig,
  type SealedConfig,
  secretContext,
} from './sealed_config.ts';
import { type StoreOfProject, type StoreTraits, traitsSql } from './store_traits.ts';

/** The tables with configs, and the id that the secrets of each row are sealed for. */
const configTables = [
  {
    table: 'exportd.destination_configs',
    ownerId: 'batch_export_id',
    what: `'batch export ' || batch_export_id || ', config version ' || version`,
  },
  {
    table: 'exportd.jobs',
    ownerId: 'target',
    what: `'destination test ' || id`,
  },
];

/**
 * Reads the secrets of all config versions, and of configs under test. One that several versions share is replaced in all of
 * them at once, so that their difference still shows which fields were changed.
 */
export async function listConfigSecrets(pool: Pool): Promise<StoredSecret[]> {
  const found = await Promise.all(
    configTables.map(async ({ table, ownerId, what }) => {
      const { rows } = await pool.query<{ owner_id: string; what: string; field: string; sealed: string }>(
        `select ${ownerId} as owner_id, ${what} as what, field, sealed
         from ${table}, jsonb_each_text(secrets) as secret (field, sealed) order by owner_id, what, field`,
      );
      return rows.map((row) => ({
        owner: `${row.field} of ${row.what}`,
        sealed: row.sealed,
        location: secretContext(row.owner_id, row.field),
        replace: async (again: string) => {
          const { rowCount } = await pool.query(
            `update ${table} set secrets = secrets || jsonb_build_object($2::text, $4::text)
             where ${ownerId} = $1 and secrets ->> $2::text = $3`,
            [row.owner_id, row.field, row.sealed, again],
          );
          return rowCount ?? 0;
        },
      }));
    }),
  );
  return found.flat();
}

/** A stored config version with encrypted secrets. */
interface StoredConfig extends SealedConfig {
  /** The export's query, which selects the columns of the files; null exports the model's columns. */
  readonly row_query: RowQuery | null;
  readonly secrets_removed: boolean;
}

/** The secrets of a config version were removed, and no later version leads to its bucket. */
export class SecretsRemoved extends DestinationError {
  constructor(version: number) {
    super(
      'SecretsRemoved',
      `The access keys of config version ${version} were removed, because the export was deleted or writes to another bucket now.`,
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
 * The fields of a version that the given ones change, by their paths in an export. Compares secrets too, so that sending them again
 * changes nothing.
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
): Promise<FieldChange[]> {
  const { batch_export_id, base_version, config } = input;
  const base = await readStoredConfig(connection, batch_export_id, base_version);
  const merged = mergeSealed(store, batch_export_id, base, config);
  // Versions of older releases lack fields that were added since.
  const before = { ...defaultFields, ...base.config };
  return [
    ...fieldChanges(before, merged.config),
    ...changedSecrets(store.keyRing, batch_export_id, base, merged).map(secretChange),
  ].map(inDestination);
}

/** The change of a field of a config, by its path in an export. */
export const inDestination = (change: FieldChange): FieldChange => ({
  ...change,
  field: `destination.config.${change.field}`,
});

/** The fields that a new config sets, by their paths in an export. */
export const givenConfigFields = (config: Fields): FieldChange[] =>
  fieldChanges({}, config)
    .map((change) => (secretFields.includes(change.field) ? secretChange(change.field) : change))
    .map(inDestination);

/** Reads a version without its secrets, for API responses. @throws ConfigVersionNotFound */
export async function readPublicConfig(
  database: Pool | Connection,
  batchExportId: string,
  version: number,
): Promise<PublicConfig & Pick<StoredConfig, 'row_query'>> {
  const { destination_type, config, row_query } = await readStoredConfig(database, batchExportId, version);
  return { destination_type, config, row_query };
}

/** A stored version without its secrets, and the query whose columns its runs export. */
export interface ConfigVersion extends PublicConfig, Pick<StoredConfig, 'row_query'> {
  readonly version: number;
}

/** Reads all versions of an export without their secrets, oldest first. */
export async function readConfigVersions(
  database: Pool | Connection,
  batchExportId: string,
): Promise<ConfigVersion[]> {
  const { rows } = await database.query<ConfigVersion>(
    `select version, destination_type, config, row_query from exportd.destination_configs
     where batch_export_id = $1 order by version`,
    [batchExportId],
  );
  return rows;
}

/**
 * Reads a version with decrypted secrets. It has the credentials of the newest version in force that leads to the same bucket:
 * keys are rotated because the old ones end, and those of replaced versions are removed. Only activities call this.
 * @throws ConfigVersionNotFound, SecretUnreadable, SecretsRemoved
 */
export const readConfig = (
  database: Pool | Connection,
  keyRing: KeyRing,
  batchExportId: string,
  version: number,
): Promise<PublicConfig> => readConfigWith(database, keyRing, { batchExportId, version }, null);

/** Reads what `readConfig` reads, and with the same statement the traits of a store; null if that was never tested. */
export async function readConfigAndTraits(
  pool: Pool,
  keyRing: KeyRing,
  of: Pick<RunSpec, 'batch_export_id' | 'config_version'>,
  store: StoreOfProject & { readonly checkIntervalMs: number },
): Promise<PublicConfig & { readonly traits: StoreTraits | null }> {
  const { batch_export_id: batchExportId, config_version: version } = of;
  return readConfigWith(pool, keyRing, { batchExportId, version }, store);
}

async function readConfigWith(
  database: Pool | Connection,
  keyRing: KeyRing,
  { batchExportId, version }: { readonly batchExportId: string; readonly version: number },
  store: (StoreOfProject & { readonly checkIntervalMs: number }) | null,
): Promise<PublicConfig & { readonly traits: StoreTraits | null }> {
  // A version above the one in force belongs to a command that was rejected, or is not decided yet.
  const found = await database.query<StoredConfig & { version: number; traits: StoreTraits | null }>(
    `select ${storedColumns}, version,
       ${store ? traitsSql({ team_id: 3, location: 4, checkIntervalMs: 5 }) : 'null'} as traits
     from exportd.destination_configs
     where batch_export_id = $1 and (version = $2 or secrets_removed_at is null and version > $2
       and version <= (select config_version from exportd.batch_exports where id = $1))
     order by version desc`,
    [batchExportId, version, ...(store ? [store.team_id, store.location, store.checkIntervalMs] : [])],
  );
  const stored = found.rows.at(-1);
  if (stored?.version !== version) throw configVersionNotFound(batchExportId, version);
  const newest = found.rows.find(
    ({ secrets_removed, config }) => !secrets_removed && locationOf(config) === locationOf(stored.config),
  );
  if (!newest) throw new SecretsRemoved(version);
  const { traits } = stored;
  const { destination_type, config } = openSealed(keyRing, batchExportId, newest);
  if (newest.version === version) return { destination_type, config, traits };
  const credentials = Object.entries(config).filter(([field]) => credentialFields.has(field));
  return {
    destination_type,
    config: {
      ...Object.fromEntries(Object.entries(stored.config).filter(([field]) => !credentialFields.has(field))),
      ...Object.fromEntries(credentials),
    },
    traits,
  };
}

/** The fields that say how to reach a bucket and who asks. */
const credentialFields: ReadonlySet<string> = new Set([
  'region',
  'endpoint_url',
  'use_virtual_style_addressing',
  'role_arn',
  'external_id',
  ...secretFields,
]);

const storedColumns =
  'destination_type, config, secrets, row_query, secrets_removed_at is not null as secrets_removed';

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
  if (!found) throw configVersionNotFound(batchExportId, version);
  return found;
}

const configVersionNotFound = (batchExportId: string, version: number): ConfigVersionNotFound =>
  new ConfigVersionNotFound(`Batch export ${batchExportId} has no config version ${version}.`);

/** Two configs with equal hashes select the same rows. */
function selectionHashOf({ config, row_query }: Pick<StoredConfig, 'config' | 'row_query'>): string {
  const selection = { ...selectionOf(config), query: row_query };
  return createHash('sha256').update(JSON.stringify(selection)).digest('base64url');
}

async function insertVersion(
  connection: Connection,
  batchExportId: string,
  row: Omit<StoredConfig, 'secrets_removed'>,
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

/** Number of config versions that a cache keeps. Each step of a run reads that of the run. */
const cacheSize = 1_000;

/** Reads config versions without their secrets, once each, since they are immutable. It throws ConfigVersionNotFound. */
export function createConfigReader(pool: Pool) {
  const known = new BoundedMap<string, Awaited<ReturnType<typeof readPublicConfig>>>(cacheSize);
  return async ({ batch_export_id, config_version }: Pick<RunSpec, 'batch_export_id' | 'config_version'>) => {
    const key = `${batch_export_id}/${config_version}`;
    const config = known.get(key) ?? (await readPublicConfig(pool, batch_export_id, config_version));
    known.set(key, config);
    return config;
  };
}

/** Reads selections from stored configs. */
export function createSelectionReader(pool: Pool): ReadSelection {
  const readStored = createConfigReader(pool);
  return async (spec) => selectionOfConfig(await readStored(spec));
}

/** The selection of a stored config version. */
export const selectionOfConfig = ({
  config,
  row_query,
}: PublicConfig & Pick<StoredConfig, 'row_query'>): RowSelection => ({
  ...selectionOf(config),
  query: row_query,
});

/** Whether two configs write the objects of an interval to the same bucket and folders. */
export const haveSamePlace = (one: PublicConfig, other: PublicConfig): boolean =>
  locationOf(one.config) === locationOf(other.config) && folderOf(one) === folderOf(other);

const folderOf = ({ config }: PublicConfig): string =>
  fileFolder({ prefix: String(config.prefix), partition_by: partitionColumnsOf(config) });

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
