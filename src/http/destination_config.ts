import { changedConfigFields, mergeConfig } from '../destination/config_versions.ts';
import type { ConfigStore } from '../destination/sealed_config.ts';
import type { Connection, Pool } from '../journal/database.ts';
import type { RowQuery } from '../source/row_selection.ts';
import { invalid, notFound } from './api_error.ts';
import type { BatchExportRow } from './read_models/batch_exports.ts';
import type { UpdateBody } from './schemas/batch_export.ts';

/** What storing a config of the project needs. */
export async function configStoreOf(
  database: Pool | Connection,
  { keyRing, settings }: ConfigStore,
  teamId: number,
): Promise<ConfigStore> {
  const { rows } = await database.query<{ external_id: string }>(
    'select external_id from exportd.projects where id = $1',
    [teamId],
  );
  const [project] = rows;
  if (!project) throw notFound();
  return { keyRing, settings: { ...settings, external_id: project.external_id } };
}

/**
 * Stores a new version of the export's config when the body changes one of its fields or the row query (`rowQuery`,
 * undefined when unchanged). A secret that is sent again is no change.
 * @returns the new version, or undefined when nothing changes, and the fields that change.
 * @throws ApiError or CommandRejected when the destination is invalid.
 */
export async function updatedConfigVersion(
  connection: Connection,
  store: ConfigStore,
  current: BatchExportRow,
  {
    destination,
    rowQuery,
  }: { destination: UpdateBody['destination']; rowQuery: RowQuery | null | undefined },
  pendingVersion: number | null,
): Promise<{ readonly version: number | undefined; readonly changed: readonly string[] }> {
  rejectTypeChange(current, destination?.type);
  const config = destination?.config ?? {};
  if (!destination?.config && rowQuery === undefined) return { version: undefined, changed: [] };
  // A pending update has a newer version, whose changes this one must keep.
  const base = Math.max(current.config_version, pendingVersion ?? 0);
  const update = { batch_export_id: current.id, base_version: base, config, row_query: rowQuery };
  const changed = await changedConfigFields(connection, store, update);
  if (changed.length === 0 && rowQuery === undefined && base === current.config_version)
    return { version: undefined, changed };
  return { version: await mergeConfig(connection, store, update), changed };
}

/** The type of a destination cannot change. @throws ApiError 400 */
export function rejectTypeChange(current: BatchExportRow, type: string | undefined): void {
  if (type !== undefined && type !== current.destination_type)
    throw invalid(
      `Cannot change destination type from '${current.destination_type}' to '${type}'.`,
      'destination__type',
    );
}

/**
 * The newest config version of the export's pending updates, or null. Blocks other updates of this export until the
 * transaction ends. Call it before reading the export, so that an update decided in between is seen there.
 */
export async function lockPendingConfigVersion(
  connection: Connection,
  batchExportId: string,
): Promise<number | null> {
  await connection.query(`select pg_advisory_xact_lock(hashtextextended('batch_export_update/' || $1, 0))`, [
    batchExportId,
  ]);
  const { rows } = await connection.query<{ version: number | null }>(
    `select max((body #>> '{changes,config_version}')::integer) as version from exportd.commands
     where batch_export_id = $1 and name = 'update' and status = 'pending'`,
    [batchExportId],
  );
  return rows[0]?.version ?? null;
}
