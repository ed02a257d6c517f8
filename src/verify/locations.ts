import { SecretUnreadable, type KeyRing } from '../config/key_ring.ts';
import type { Settings } from '../config/settings.ts';
import { readConfig } from '../destination/config_versions.ts';
import { DestinationError, type DestinationContext } from '../destination/destination.ts';
import { parseS3Config } from '../destination/s3/config.ts';
import { constantPart } from '../destination/s3/prefix.ts';
import { openBucketReader, type BucketReader } from '../destination/s3/reading.ts';
import type { Model } from '../domain/batch_export.ts';
import { CommandRejected } from '../domain/errors.ts';
import type { Pool } from '../journal/database.ts';
import type { RowQuery } from '../source/row_query/row_query.ts';
import { CannotVerify, type Note } from './report.ts';

/** An export as it was defined, for whoever looks at what it wrote. */
export interface ExportDefinition {
  readonly batch_export_id: string;
  readonly team_id: number;
  readonly model: Model;
  readonly config_version: number;
  /** Every version of its config, oldest first, without secrets. */
  readonly versions: readonly ConfigVersion[];
}

/** A version of the config, and the query whose columns its runs export. */
export interface ConfigVersion {
  readonly version: number;
  readonly destination_type: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly row_query: RowQuery | null;
}

/** A bucket that the export wrote to under some version of its config. */
export interface ExportLocation {
  readonly reader: BucketReader;
  /** Key prefixes below which manifests of the export may lie, each with a slash at its end. */
  readonly manifestFolders: readonly string[];
  /** Whether the version in force leads here. */
  readonly current: boolean;
}

/** What opening the places of an export needs. */
export interface LocationDependencies {
  readonly pool: Pool;
  readonly keyRing: KeyRing;
  readonly settings: Settings;
  readonly onFault: DestinationContext['onError'];
}

/** Reads an export that there is or was. @throws CannotVerify when there is none. */
export async function readDefinition(pool: Pool, batchExportId: string): Promise<ExportDefinition> {
  const exports = await pool.query<Omit<ExportDefinition, 'batch_export_id' | 'versions'>>(
    'select team_id, model, config_version from exportd.batch_exports where id::text = $1',
    [batchExportId.toLowerCase()],
  );
  const [found] = exports.rows;
  if (!found) throw new CannotVerify(`There is no batch export ${batchExportId}.`);
  const id = batchExportId.toLowerCase();
  return { batch_export_id: id, ...found, versions: await readVersions(pool, id) };
}

/** Every version of an export's config, oldest first. */
async function readVersions(pool: Pool, batchExportId: string): Promise<ConfigVersion[]> {
  const { rows } = await pool.query<ConfigVersion>(
    `select version, destination_type, config, row_query from exportd.destination_configs
     where batch_export_id = $1 order by version`,
    [batchExportId],
  );
  return rows;
}

/** Finds a version of an export's config; undefined when there is none. */
export type FindVersion = (version: number) => Promise<ConfigVersion | undefined>;

/** Finds versions among those of the definition, and those that were stored since. */
export function createVersionFinder(pool: Pool, definition: ExportDefinition): FindVersion {
  let { versions } = definition;
  const known = (wanted: number) => versions.find(({ version }) => version === wanted);
  return async (wanted) => {
    if (!known(wanted)) versions = await readVersions(pool, definition.batch_export_id);
    return known(wanted);
  };
}

/** The places of an export, and why some of those that it has left could not be opened. */
export interface OpenedLocations {
  readonly locations: readonly ExportLocation[];
  readonly notes: readonly Note[];
}

/**
 * Opens every bucket of the export, each once, with the newest version of the config that leads there.
 * @throws CommandRejected, SecretUnreadable or DestinationError when the one in force cannot be opened.
 */
export async function openLocations(
  { pool, keyRing, settings, onFault }: LocationDependencies,
  definition: ExportDefinition,
): Promise<OpenedLocations> {
  const locations: ExportLocation[] = [];
  const notes: Note[] = [];
  const buckets = Map.groupBy(definition.versions, ({ config }) =>
    JSON.stringify([config.endpoint_url ?? null, config.bucket_name]),
  );
  for (const versions of buckets.values()) {
    const newest = Math.max(...versions.map(({ version }) => version));
    const current = versions.some(({ version }) => version === definition.config_version);
    try {
      const { config } = await readConfig(pool, keyRing, definition.batch_export_id, newest);
      const reader = openBucketReader(parseS3Config(config, settings), { settings, onError: onFault });
      const manifestFolders = [...new Set(versions.map((version) => manifestFolder(version, definition)))];
      locations.push({ reader, manifestFolders, current });
    } catch (error) {
      const isRefused = [CommandRejected, SecretUnreadable, DestinationError].some(
        (kind) => error instanceof kind,
      );
      if (current || !isRefused || !Error.isError(error)) throw error;
      const detail = `Where the export wrote under version ${newest} of its config could not be looked at: ${error.message}`;
      notes.push({ start: null, end: null, detail });
    }
  }
  return { locations, notes };
}

function manifestFolder({ config }: ConfigVersion, { batch_export_id }: ExportDefinition): string {
  const constant = constantPart(typeof config.prefix === 'string' ? config.prefix : '');
  return `${constant === '' ? '' : `${constant}/`}_manifests/${batch_export_id}/`;
}
