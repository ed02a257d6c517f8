import type { BatchExportDefinition, LiveBatchExport, Model } from '../domain/batch_export.ts';
import { CommandRejected } from '../domain/errors.ts';
import type { ScheduleRevision } from '../domain/intervals.ts';
import { canShareIntervals } from '../domain/shared_intervals.ts';
import { configAttribute } from '../destination/config_fields.ts';
import { destinationTypeOf } from '../destination/registry.ts';
import { refuseSelectionForModel } from '../destination/row_selection_fields.ts';
import type { Connection } from '../journal/database.ts';

interface ExportWithConfig {
  readonly id: string;
  readonly team_id: number;
  readonly model: Model;
  /** Every definition of its schedule: a backfill reaches back to those of the past. Null while it is being created. */
  readonly revisions: readonly ScheduleRevision[] | null;
  readonly config: Readonly<Record<string, unknown>>;
}

/** Whether a change of definition touches what the rules below look at. */
export const affectsDestination = (before: BatchExportDefinition, after: BatchExportDefinition): boolean =>
  (['config_version', 'model', 'interval', 'timezone', 'offset_hour', 'offset_day'] as const).some(
    (member) => before[member] !== after[member],
  );

/**
 * Refuses an export whose selection of rows means nothing for its model, and one that would write the keys of another
 * live export, paused ones among them. Call it after the export's events are appended: read models are compared, under
 * a lock that holds until the transaction ends, so that of two exports at the same instant one is refused.
 * @throws CommandRejected that names the member of the config.
 */
export async function checkDestination(
  connection: Connection,
  id: string,
  { definition, revisions }: Pick<LiveBatchExport, 'definition' | 'revisions'>,
): Promise<void> {
  await connection.query(`select pg_advisory_xact_lock(hashtextextended('destination_keys', 0))`);
  const exports = await liveExports(connection, definition.destination_type);
  const stored = exports.find((found) => found.id === id);
  // Without a stored config there is nothing that could be written.
  if (!stored) return;
  // States are written at the end of a transaction: the one at hand is newer.
  const own = { ...stored, pieces: revisions };
  const type = destinationTypeOf(definition.destination_type);
  refuseSelectionForModel(type.selectionOf(own.config), own.model);
  const found = exports.find(
    (other) =>
      other.id !== id &&
      other.revisions !== null &&
      type.keysCollide(own, other) &&
      canShareIntervals(own.pieces, other.revisions),
  );
  if (found) throw keyCollisionError(own, found);
}

/** Another project's exports are not named to this one. */
const keyCollisionError = (own: ExportWithConfig, other: ExportWithConfig): CommandRejected =>
  new CommandRejected(
    'invalid_input',
    `${other.team_id === own.team_id ? `The batch export ${other.id}` : 'A batch export of another project'} ` +
      'writes the same keys to this bucket; give this one a prefix of its own.',
    configAttribute('prefix'),
  );

async function liveExports(connection: Connection, destinationType: string): Promise<ExportWithConfig[]> {
  const { rows } = await connection.query<ExportWithConfig>(
    `select export.id, export.team_id, export.model, stream.state->'pieces' as pieces, version.config
     from exportd.batch_exports export
     join exportd.destination_configs version
       on version.batch_export_id = export.id and version.version = export.config_version
     left join exportd.stream_states stream on stream.stream_type = 'batch_export' and stream.stream_id = export.id
     where export.destination_type = $1 and not export.deleted
     order by export.created_at, export.id`,
    [destinationType],
  );
  return rows;
}
