import { DestinationError } from '../destination/destination.ts';
import { formatNames, rejectField } from '../destination/config_fields.ts';
import { tableLocationOf } from '../tables/table_store.ts';
import { locationOf } from '../destination/bucket_location.ts';
import { partitionColumnsOf } from '../destination/partitions.ts';
import type { ConfigRule } from '../decisions/config_rule.ts';
import type { ExportWithConfig } from '../decisions/exports_with_config.ts';
import type { Model } from '../domain/batch_export.ts';
import { CommandRejected } from '../domain/errors.ts';
import type { Connection } from '../journal/database.ts';
import { exportedColumns } from '../source/postgres_source.ts';
import type { RowQuery } from '../source/row_selection.ts';
import { withColumns } from '../tables/schema.ts';

/** What a table asks of the config of its export. */
export const tableRule: ConfigRule = {
  check: rejectUnusableTable,
  fileRetentionMs: (settings) => settings.EXPORTD_TABLE_FILE_RETENTION,
};

/**
 * Rejects a table that runs could not commit to: one in a store that overwrites objects, one in the folder of another export's
 * table, and columns that contradict those of its files. What other writers do is found by the runs.
 * @throws CommandRejected
 */
async function rejectUnusableTable(
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
