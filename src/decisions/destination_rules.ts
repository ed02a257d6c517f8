import type { BatchExportDefinition, LiveBatchExport, Model } from '../domain/batch_export.ts';
import { CommandRefused } from '../domain/errors.ts';
import type { SchedulePiece } from '../domain/intervals.ts';
import { mayShareIntervals } from '../domain/shared_intervals.ts';
import { configAttribute } from '../destination/config_members.ts';
import { destinationTypeOf } from '../destination/registry.ts';
import { refuseSelectionForModel } from '../destination/row_selection_members.ts';
import type { Connection } from '../journal/database.ts';

interface ExportWithConfig {
  readonly id: string;
  readonly team_id: number;
  readonly model: Model;
  /** Every definition of its schedule: a backfill reaches back to those of the past. Null while it is being created. */
  readonly pieces: readonly SchedulePiece[] | null;
  readonly config: Readonly<Record<string, unknown>>;
}

/** Whether a change of definition touches what the rules below look at. */
export const touchesDestination = (before: BatchExportDefinition, after: BatchExportDefinition): boolean =>
  (['config_version', 'model', 'interval', 'timezone', 'offset_hour', 'offset_day'] as const).some(
    (member) => before[member] !== after[member],
  );

/**
 * Refuses an export whose selection of rows means nothing for its model, and one that would write the keys of another
 * live export, paused ones among them. Call it after the export's events are appended: read models are compared, under
 * a lock that holds until the transaction ends, so that of two exports at the same instant one is refused.
 * @throws CommandRefused that names the member of the config.
 */
export async function checkDestination(
  connection: Connection,
  id: string,
  { definition, pieces }: Pick<LiveBatchExport, 'definition' | 'pieces'>,
): Promise<void> {
  await connection.query(`select pg_advisory_xact_lock(hashtextextended('destination_keys', 0))`);
  const exports = await liveExports(connection, definition.destination_type);
  const stored = exports.find((found) => found.id === id);
  // Without a stored config there is nothing that could be written.
  if (!stored) return;
  // States are written at the end of a transaction: the one at hand is newer.
  const own = { ...stored, pieces };
  const type = destinationTypeOf(definition.destination_type);
  refuseSelectionForModel(type.selectionOf(own.config), own.model);
  const found = exports.find(
    (other) =>
      other.id !== id &&
      other.pieces !== null &&
      type.writesSameKeys(own, other) &&
      mayShareIntervals(own.pieces, other.pieces),
  );
  if (found) throw refuseSameKeys(own, found);
}

/** Another project's exports are not named to this one. */
const refuseSameKeys = (own: ExportWithConfig, other: ExportWithConfig): CommandRefused =>
  new CommandRefused(
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
