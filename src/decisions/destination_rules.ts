import type { BatchExportDefinition, LiveBatchExport, Model } from '../domain/batch_export.ts';
import { CommandRejected } from '../domain/errors.ts';
import { canShareIntervals, type ScheduleRevision } from '../domain/intervals.ts';
import { configAttribute } from '../destination/formats.ts';
import { rejectSelectionForModel, selectionOf } from '../destination/config.ts';
import { keysCollide, locationOf } from '../destination/keys.ts';
import type { Connection, Pool } from '../journal/database.ts';

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
 * live (possibly paused) export of the project. Exports of other projects are not compared, or a project could learn of
 * them and keep a prefix from its owner; an object whose key is taken is never overwritten. Call it after the export's
 * events are appended, because it compares read models. It holds a lock until the transaction ends, so of two colliding
 * exports at the same instant one is rejected.
 * @throws CommandRejected with the invalid field of the config.
 */
export async function checkDestination(
  connection: Connection,
  id: string,
  { revisions }: Pick<LiveBatchExport, 'revisions'>,
): Promise<void> {
  const {
    rows: [owner],
  } = await connection.query<{ team_id: number }>(
    `select team_id, pg_advisory_xact_lock(hashtextextended('destination_keys/' || team_id, 0))
     from exportd.batch_exports where id = $1`,
    [id],
  );
  // Without a row the export is not created.
  if (!owner) return;
  const exports = await readExportsWithConfig(connection, owner.team_id);
  const stored = exports.find((existing) => existing.id === id);
  // Without a stored config the export cannot write.
  if (!stored) return;
  // The state at hand is newer: states are stored at the end of a transaction.
  const own = { ...stored, revisions };
  rejectSelectionForModel(selectionOf(own.config), own.model);
  const existing = exports.find((other) => other.id !== id && collide(own, other));
  if (existing)
    throw new CommandRejected(
      'invalid_input',
      `The batch export ${existing.id} writes the same keys to this bucket. Use a different prefix.`,
      configAttribute('prefix'),
    );
}

/**
 * Whether two exports write the same keys. No, if this version cannot read one of them: it must not keep others from
 * being created, and what a run finds under its keys is never overwritten.
 */
function collide(one: ExportWithConfig, other: ExportWithConfig): boolean {
  if (one.revisions === null || other.revisions === null) return false;
  try {
    return keysCollide(one, other) && canShareIntervals(one.revisions, other.revisions);
  } catch {
    return false;
  }
}

/** Live exports of two projects that write the same keys. */
interface SharedKeys {
  readonly location: string;
  readonly exports: readonly { readonly id: string; readonly team_id: number }[];
}

/**
 * Finds exports of different projects that write the same keys, for the operator. Neither project is told of the other.
 * Nothing is overwritten: the run that comes second writes to the keys of a later generation.
 */
export async function findSharedKeys(pool: Pool): Promise<SharedKeys[]> {
  const found: SharedKeys[] = [];
  const byLocation = new Map<string, ExportWithConfig[]>();
  for (const one of await readExportsWithConfig(pool, null)) {
    const location = locationOf(one.config);
    const others = byLocation.get(location) ?? [];
    for (const other of others)
      if (other.team_id !== one.team_id && collide(other, one))
        found.push({ location, exports: [other, one].map(({ id, team_id }) => ({ id, team_id })) });
    byLocation.set(location, [...others, one]);
  }
  return found;
}

/** Reads the live exports of one project or of all. */
async function readExportsWithConfig(
  database: Pool | Connection,
  teamId: number | null,
): Promise<ExportWithConfig[]> {
  const { rows } = await database.query<ExportWithConfig>(
    `select export.id, export.team_id, export.model, stream.state->'revisions' as revisions, version.config
     from exportd.batch_exports export
     join exportd.destination_configs version
       on version.batch_export_id = export.id and version.version = export.config_version
     left join exportd.stream_states stream on stream.stream_type = 'batch_export' and stream.stream_id = export.id
     where not export.deleted and ($1::integer is null or export.team_id = $1)
     order by export.created_at, export.id`,
    [teamId],
  );
  return rows;
}
