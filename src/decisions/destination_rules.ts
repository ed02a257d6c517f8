import type { BatchExportDefinition, LiveBatchExport, Model } from '../domain/batch_export.ts';
import { CommandRejected } from '../domain/errors.ts';
import type { ScheduleRevision } from '../domain/intervals.ts';
import { canShareIntervals } from '../domain/shared_intervals.ts';
import { configAttribute } from '../destination/config_fields.ts';
import { destinationTypeOf } from '../destination/registry.ts';
import { rejectSelectionForModel } from '../destination/row_selection_fields.ts';
import type { Connection } from '../journal/database.ts';

interface ExportWithConfig {
  readonly id: string;
  readonly team_id: number;
  readonly model: Model;
  /** All revisions of its schedule, because a backfill can reach the past ones. Null while it is being created. */
  readonly revisions: readonly ScheduleRevision[] | null;
  readonly config: Readonly<Record<string, unknown>>;
}

/** Whether a change of the definition can affect the result of `checkDestination`. */
export const affectsDestination = (before: BatchExportDefinition, after: BatchExportDefinition): boolean =>
  (['config_version', 'model', 'interval', 'timezone', 'offset_hour', 'offset_day'] as const).some(
    (field) => before[field] !== after[field],
  );

/**
 * Rejects a row selection that does not apply to the export's model, and a prefix that produces the same keys as another
 * live (possibly paused) export. Call it after the export's events are appended, because it compares read models. It
 * holds a lock until the transaction ends, so of two colliding exports at the same instant one is rejected.
 * @throws CommandRejected with the invalid field of the config.
 */
export async function checkDestination(
  connection: Connection,
  id: string,
  { definition, revisions }: Pick<LiveBatchExport, 'definition' | 'revisions'>,
): Promise<void> {
  await connection.query(`select pg_advisory_xact_lock(hashtextextended('destination_keys', 0))`);
  const exports = await liveExports(connection, definition.destination_type);
  const stored = exports.find((existing) => existing.id === id);
  // Without a stored config the export cannot write.
  if (!stored) return;
  // The state at hand is newer: states are stored at the end of a transaction.
  const own = { ...stored, revisions };
  const type = destinationTypeOf(definition.destination_type);
  rejectSelectionForModel(type.selectionOf(own.config), own.model);
  const existing = exports.find(
    (other) =>
      other.id !== id &&
      other.revisions !== null &&
      type.keysCollide(own, other) &&
      canShareIntervals(own.revisions, other.revisions),
  );
  if (existing) throw keyCollisionError(own, existing);
}

/** The message does not reveal the ids of another project's exports. */
const keyCollisionError = (own: ExportWithConfig, other: ExportWithConfig): CommandRejected =>
  new CommandRejected(
    'invalid_input',
    `${other.team_id === own.team_id ? `The batch export ${other.id}` : 'A batch export of another project'} ` +
      'writes the same keys to this bucket. Use a different prefix.',
    configAttribute('prefix'),
  );

async function liveExports(connection: Connection, destinationType: string): Promise<ExportWithConfig[]> {
  const { rows } = await connection.query<ExportWithConfig>(
    `select export.id, export.team_id, export.model, stream.state->'revisions' as revisions, version.config
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
