import type { BatchExportDefinition, LiveBatchExport, Model } from '../domain/batch_export.ts';
import { CommandRejected } from '../domain/errors.ts';
import { canShareIntervals, type ScheduleRevision } from '../domain/intervals.ts';
import { DestinationError } from '../destination/destination.ts';
import { configAttribute, formatNames, rejectField } from '../destination/formats.ts';
import { rejectPartitions, rejectSelectionForModel, selectionOf } from '../destination/config.ts';
import { keysCollide, locationOf, partitionColumnsOf, tableLocationOf } from '../destination/keys.ts';
import type { Connection, Pool } from '../journal/database.ts';
import { exportedColumns } from '../source/postgres_source.ts';
import type { RowQuery } from '../source/row_selection.ts';
import { withColumns } from '../tables/schema.ts';

interface ExportWithConfig {
  readonly id: string;
  readonly team_id: number;
  readonly model: Model;
  /** All revisions of its schedule, because a backfill can reach the past ones. Null while it is being created. */
  readonly revisions: readonly ScheduleRevision[] | null;
  readonly config: Readonly<Record<string, unknown>>;
  readonly config_version: number;
  readonly row_query: RowQuery | null;
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
  { definition, revisions }: Pick<LiveBatchExport, 'definition' | 'revisions'>,
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
  rejectPartitions(own.config, {
    interval: definition.interval,
    columns: exportedColumns(own.model, { query: own.row_query }),
    hasQuery: own.row_query !== null,
  });
  await checkTable(connection, own, exports);
  const existing = exports.find((other) => other.id !== id && collide(own, other));
  if (existing)
    throw new CommandRejected(
      'invalid_input',
      `The batch export ${existing.id} writes the same keys to this bucket. Use a different prefix.`,
      configAttribute('prefix'),
    );
}

/**
 * Rejects a table that runs could not commit to: one in a store that overwrites objects, one in the folder of another export's
 * table, and columns that contradict those of its files. What other writers do is found by the runs.
 * @throws CommandRejected
 */
async function checkTable(
  connection: Connection,
  own: ExportWithConfig,
  exports: readonly ExportWithConfig[],
): Promise<void> {
  const table = tableLocationOf(own.config, own.model);
  if (table === null) return;
  const { rows: overwriting } = await connection.query(
    'select from exportd.store_traits where team_id = $1 and location = $2 and not conditional_put',
    [own.team_id, locationOf(own.config)],
  );
  if (overwriting.length > 0)
    throw rejectField(
      'table_format',
      'The S3 server of the destination does not refuse to overwrite objects, which a table needs: two commits could have the same version. Use another store, or test the destination again.',
    );
  const isWithin = (one: string, folder: string): boolean => `${one}/`.startsWith(`${folder}/`);
  const other = exports.find((existing) => {
    const found = existing.id === own.id ? null : tableLocationOf(existing.config, existing.model);
    return found !== null && (isWithin(found, table) || isWithin(table, found));
  });
  if (other)
    throw rejectField(
      'prefix',
      `The batch export ${other.id} has a table in the same folder, or in one within the other. Use a prefix whose first segments differ.`,
    );
  await checkColumns(connection, own, table);
}

/** @throws CommandRejected when a column has another type than in the files that the table has, or the table other partitions */
async function checkColumns(
  connection: Connection,
  { id, model, config, config_version }: ExportWithConfig,
  table: string,
): Promise<void> {
  const { rows } = await connection.query<{
    model: Model;
    config: ExportWithConfig['config'];
    row_query: RowQuery | null;
  }>(
    `select distinct on (config.version, used.model) used.model, config.config, config.row_query
     from exportd.destination_configs config
     join (select config_version, model from exportd.batch_export_runs where batch_export_id = $1
           union select $2::integer, $3) used on used.config_version = config.version
     where config.batch_export_id = $1
     order by config.version, used.model`,
    [id, config_version, model],
  );
  const former = rows.filter((row) => tableLocationOf(row.config, row.model) === table);
  const other = former
    .map((row) => partitionColumnsOf(row.config))
    .find((columns) => String(columns) !== String(partitionColumnsOf(config)));
  if (other)
    throw rejectField(
      'partition_by',
      `The table of the export has ${other.length === 0 ? 'no partitions' : `the partitions ${formatNames(other)}`}, and a table keeps its partitions. Set partition_by back, or use a prefix with another first segment, which is a new table, and backfill it.`,
    );
  try {
    former.reduce<string | null>(
      (schema, { model: of, row_query }) => withColumns(schema, exportedColumns(of, { query: row_query })),
      null,
    );
  } catch (error) {
    if (!(error instanceof DestinationError)) throw error;
    throw new CommandRejected('invalid_input', error.message, 'dialect_query');
  }
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
 * Finds exports of different projects that write the same keys, for the operator. Neither project learns of the other.
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
    `select export.id, export.team_id, export.model, export.config_version, stream.state->'revisions' as revisions, version.config, version.row_query
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
