import { type KeyRing, SecretUnreadable } from '../config/key_ring.ts';
import type { Settings } from '../config/settings.ts';
import { parseS3Config } from '../destination/config.ts';
import {
  type ConfigVersion,
  readConfig,
  readConfigVersions,
  selectionOfConfig,
} from '../destination/config_versions.ts';
import { DestinationError } from '../destination/destination.ts';
import { constantPrefix } from '../destination/prefix.ts';
import { locationOf } from '../destination/bucket_location.ts';
import type { Manifest } from '../destination/manifest.ts';
import { foreignBecause } from '../destination/own_keys.ts';
import type { DestinationContext } from '../destination/requests.ts';
import type { Model } from '../domain/batch_export.ts';
import { CommandRejected } from '../domain/errors.ts';
import type { DataInterval } from '../domain/intervals.ts';
import type { Pool } from '../journal/database.ts';
import { allRows } from '../source/row_selection.ts';
import type { RowRange } from '../source/source.ts';
import { CannotVerify, type FindingCollector, type Note } from './report.ts';
import { type BucketReader, openBucketReader } from '../destination/bucket_reader.ts';

/** The definition of an export, as far as verifying needs it. */
export interface ExportDefinition {
  readonly batch_export_id: string;
  readonly team_id: number;
  readonly model: Model;
  readonly config_version: number;
  readonly retention_days: number | null;
  /** All config versions, oldest first, without secrets. */
  readonly versions: readonly ConfigVersion[];
}

/** A bucket that the export wrote to with some config version. */
export interface ExportLocation {
  readonly reader: BucketReader;
  /** Key prefixes of the export's manifests, each with a trailing slash. */
  readonly manifestFolders: readonly string[];
  /** The config versions that lead there. */
  readonly versions: readonly ConfigVersion[];
  /** Whether the current config version uses this bucket. */
  readonly current: boolean;
}

/** Dependencies for opening the locations of an export. */
export interface LocationDependencies {
  readonly pool: Pool;
  readonly keyRing: KeyRing;
  readonly settings: Settings;
  readonly onError: DestinationContext['onError'];
}

/** Reads an existing or deleted export. @throws CannotVerify when there is none */
export async function readDefinition(pool: Pool, batchExportId: string): Promise<ExportDefinition> {
  const exports = await pool.query<Omit<ExportDefinition, 'batch_export_id' | 'versions'>>(
    'select team_id, model, config_version, retention_days from exportd.batch_exports where id::text = $1',
    [batchExportId.toLowerCase()],
  );
  const [found] = exports.rows;
  if (!found) throw new CannotVerify(`Batch export ${batchExportId} does not exist.`);
  const id = batchExportId.toLowerCase();
  return { batch_export_id: id, ...found, versions: await readConfigVersions(pool, id) };
}

/** Finds a config version of an export; undefined when it does not exist. */
type FindVersion = (version: number) => Promise<ConfigVersion | undefined>;

/** Finds versions in the definition, or among those that were stored since. */
export function createVersionFinder(pool: Pool, definition: ExportDefinition): FindVersion {
  let { versions } = definition;
  const known = (requested: number) => versions.find(({ version }) => version === requested);
  return async (requested) => {
    if (!known(requested)) versions = await readConfigVersions(pool, definition.batch_export_id);
    return known(requested);
  };
}

/** The locations of an export, and notes about earlier ones that could not be opened. */
export interface OpenedLocations {
  readonly locations: readonly ExportLocation[];
  readonly notes: readonly Note[];
}

/**
 * Opens each bucket of the export once, with the newest config version that leads there.
 * @throws CommandRejected, SecretUnreadable or DestinationError when the current location cannot be opened
 */
export async function openLocations(
  { pool, keyRing, settings, onError }: LocationDependencies,
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
      const reader = openBucketReader(parseS3Config(config, settings), {
        settings,
        team_id: definition.team_id,
        onError,
      });
      const manifestFolders = [...new Set(versions.map((version) => manifestFolder(version, definition)))];
      locations.push({ reader, manifestFolders, versions, current });
    } catch (error) {
      const isUnusable = [CommandRejected, SecretUnreadable, DestinationError].some(
        (kind) => error instanceof kind,
      );
      if (current || !isUnusable || !(error instanceof Error)) throw error;
      const detail = `The location of config version ${newest} could not be opened: ${error.message}`;
      notes.push({ start: null, end: null, reason: null, intervals: 0, detail });
    }
  }
  return { locations, notes };
}

function manifestFolder({ config }: ConfigVersion, { batch_export_id }: ExportDefinition): string {
  const constant = constantPrefix(typeof config.prefix === 'string' ? config.prefix : '');
  return `${constant === '' ? '' : `${constant}/`}_manifests/${batch_export_id}/`;
}

/** Returns why a manifest is not one that exportd wrote for an interval of the export, as a sentence; null if it may be. */
export async function foreignManifestBecause(
  { definition, findVersion }: RangeContext,
  { versions }: ExportLocation,
  { start, end }: DataInterval,
  manifest: Manifest,
): Promise<string | null> {
  // The config may have changed since the locations were opened.
  const own = await findVersion(manifest.config_version);
  const leadsHere = versions.every(({ config }) => own && locationOf(config) === locationOf(own.config));
  const configs = [...versions, ...(own && leadsHere ? [own] : [])].map(({ config }) => config);
  const interval = {
    batch_export_id: definition.batch_export_id,
    model: definition.model,
    data_interval_start: start,
    data_interval_end: end,
  };
  return foreignBecause(manifest, interval, configs);
}

/** The interval of a manifest. */
export const intervalOf = ({ data_interval_start, data_interval_end }: Manifest): DataInterval => ({
  start: new Date(data_interval_start).toISOString(),
  end: new Date(data_interval_end).toISOString(),
});

/** Dependencies for creating ranges. */
export interface RangeContext {
  readonly definition: ExportDefinition;
  readonly findVersion: FindVersion;
}

/**
 * The rows of the source that a manifest should contain, according to its model and config version. If the version
 * does not exist, this is reported and the current version is used.
 */
export async function rangeOfManifest(
  context: RangeContext,
  manifest: Manifest,
  collector: FindingCollector,
  name: string,
): Promise<RowRange> {
  const range = await currentRange(context, intervalOf(manifest));
  const version = await context.findVersion(manifest.config_version);
  if (!version)
    collector.add(
      'manifest_inconsistent',
      name,
      `The export has no config version ${manifest.config_version}.`,
    );
  return {
    ...range,
    model: manifest.model,
    selection: version ? selectionOfConfig(version) : range.selection,
  };
}

/** The rows of an interval that the export would select now. */
export async function currentRange(
  { definition, findVersion }: RangeContext,
  interval: DataInterval,
): Promise<RowRange> {
  const { model, team_id, config_version } = definition;
  const version = await findVersion(config_version);
  return { model, team_id, interval, selection: version ? selectionOfConfig(version) : allRows };
}
