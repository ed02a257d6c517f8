import type { Pool } from './database.ts';
import type { Subscriber } from './journal.ts';

/** What a module stores of exports beside the journal and its read models, and when it goes. The worker has a list of them. */
export interface StoredRows {
  /** Its tables with a column `batch_export_id`, in the order to delete from them when a deleted export is purged. */
  readonly tables: readonly string[];
  /** Statements that delete what has expired: rows older than $1 milliseconds, at most $2 of them. */
  readonly expired: readonly string[];
}

/** What an export has told in its log. */
export const logRows: StoredRows = {
  tables: ['log_lines'],
  expired: [
    // Reads only the oldest rows, which are at the start of an index.
    `delete from exportd.log_lines where id in (
       select id from (select id, timestamp from exportd.log_lines order by id limit $2) oldest
       where timestamp < clock_timestamp() - $1 * interval '1 millisecond')`,
  ],
};

/** Deletes the rows that a table has of an export with it: they can no longer be read. */
export const deletedWithExport =
  (table: string): Subscriber =>
  async (connection, { stored }) => {
    if (stored.type === 'BatchExportDeleted')
      await connection.query(`delete from exportd.${table} where batch_export_id = $1`, [stored.stream_id]);
    return undefined;
  };

/** Rows per statement, to keep locks and disk writes short. */
const batchSize = 5_000;
/** Statements per call; the next call continues. */
const maxBatches = 50;

/**
 * Deletes rows that are older than `retentionMs`, in batches. The journal keeps everything.
 * @returns the number of deleted rows.
 */
export async function deleteExpired(
  pool: Pool,
  retentionMs: number,
  stored: readonly StoredRows[],
): Promise<number> {
  let deleted = 0;
  for (const statement of stored.flatMap(({ expired }) => expired))
    for (let batches = 0; batches < maxBatches; batches++) {
      const { rowCount } = await pool.query(statement, [retentionMs, batchSize]);
      deleted += rowCount ?? 0;
      if ((rowCount ?? 0) < batchSize) break;
    }
  return deleted;
}

const purgedRows = 2_000;

/** Deletes the rows of an export, in batches until `isOver`. @returns whether none is left */
export async function purgeRows(
  pool: Pool,
  batchExportId: string,
  stored: readonly StoredRows[],
  isOver: () => boolean,
): Promise<boolean> {
  for (const table of stored.flatMap(({ tables }) => tables))
    for (let deleted = purgedRows; deleted === purgedRows;) {
      if (isOver()) return false;
      const { rowCount } = await pool.query(
        `delete from exportd.${table} where ctid in (
           select ctid from exportd.${table} where batch_export_id = $1 limit ${purgedRows})`,
        [batchExportId],
      );
      deleted = rowCount ?? 0;
    }
  return true;
}
