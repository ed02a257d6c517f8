import { batchExportDecider } from '../domain/batch_export.ts';
import type { Pool } from '../journal/database.ts';
import type { Journal } from '../journal/journal.ts';
import { purgeRows, type StoredRows } from '../journal/stored_rows.ts';
import { forgetExport } from '../projections/registry.ts';
import { activeStatuses } from '../projections/runs.ts';
import { collapseStreams } from './collapse_streams.ts';

/** Exports that were deleted so long ago that they may be purged: nothing of them is left to do. */
export async function readExportsToPurge(pool: Pool, deletedExportMs: number): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>(
    `select id from exportd.batch_exports export
     where deleted and last_updated_at < statement_timestamp() - $1::float8 * interval '1 millisecond'
       and not exists (
         select from exportd.destination_objects object
         where object.batch_export_id = export.id and object.obsolete_at is not null)
       and not exists (
         select from exportd.destination_configs config
         where config.batch_export_id = export.id and config.secrets <> '{}')
       and not exists (
         select from exportd.batch_export_runs run
         where run.batch_export_id = export.id and run.status in (${activeStatuses}))
       and not exists (
         select from exportd.commands command
         where command.batch_export_id = export.id and command.status in ('pending', 'withdrawn'))
     order by last_updated_at`,
    [deletedExportMs],
  );
  return rows.map(({ id }) => id);
}

/** What this folder stores of exports beside the journal and its read models. */
export const decisionRows: StoredRows = {
  tables: ['interval_comparisons', 'interval_repairs', 'commands'],
  expired: [],
};

/** Deletes everything of a deleted export, its own stream last. Its files stay in the bucket. @returns whether it is done */
export async function purgeExport(
  journal: Journal,
  batchExportId: string,
  stored: readonly StoredRows[],
  isOver: () => boolean,
): Promise<boolean> {
  const { pool } = journal;
  for (const [table, kind] of [
    ['batch_export_runs', 'run_ids'],
    ['backfills', 'backfill_ids'],
  ] as const)
    for (let isEmpty = false; !isEmpty;) {
      if (isOver()) return false;
      isEmpty = await journal.transaction(async (transaction) => {
        const stream = await transaction.lock(batchExportDecider, batchExportId);
        const { rows } = await transaction.connection.query<{ id: string }>(
          `select id from exportd.${table} where batch_export_id = $1 limit 100`,
          [batchExportId],
        );
        if (rows.length === 0) return true;
        const digest = { intervals: [], run_ids: [], backfill_ids: [], [kind]: rows.map(({ id }) => id) };
        await collapseStreams(transaction.connection, stream, digest);
        return false;
      });
    }
  if (!(await purgeRows(pool, batchExportId, stored, isOver))) return false;
  return journal.transaction(async ({ connection, lock }) => {
    await lock(batchExportDecider, batchExportId);
    if (!(await forgetExport(connection, batchExportId))) return false;
    await connection.query(
      `update exportd.journal_streams set collapsed_at = clock_timestamp()
       where stream_type = 'batch_export' and stream_id = $1`,
      [batchExportId],
    );
    await connection.query('delete from exportd.destination_configs where batch_export_id = $1', [
      batchExportId,
    ]);
    return true;
  });
}
