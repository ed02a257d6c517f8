import type { Pool } from '../journal/database.ts';

/** Rows per statement, to keep locks and disk writes short. */
const batchSize = 5_000;
/** Statements per call; the next call continues. */
const maxBatches = 50;

/** Each statement reads only the oldest rows, which are at the start of an index. */
const statements = [
  `delete from exportd.log_lines where id in (
     select id from (select id, timestamp from exportd.log_lines order by id limit $2) oldest
     where timestamp < clock_timestamp() - $1 * interval '1 millisecond')`,
  `delete from exportd.notifications where id in (
     select id from exportd.notifications notification
     where created_at < clock_timestamp() - $1 * interval '1 millisecond' and (type = 'test' or not exists (
       select from exportd.webhook_deliveries delivery
       where delivery.notification_id = notification.id and delivery.status = 'pending'))
     order by created_at limit $2)`,
  // Incidents of a schedule stay open until it recovers. A backfill may never complete another run, so its own expire.
  `delete from exportd.incidents where (batch_export_id, owner_id, data_interval_start, data_interval_end) in (
     select batch_export_id, owner_id, data_interval_start, data_interval_end from exportd.incidents
     where owner_id <> batch_export_id and opened_at < clock_timestamp() - $1 * interval '1 millisecond'
     order by opened_at limit $2)`,
  // A report names rows by their ids.
  `delete from exportd.verifications where id in (
     select id from exportd.verifications where created_at < clock_timestamp() - $1 * interval '1 millisecond'
     order by created_at limit $2)`,
];

/**
 * Deletes log lines, notifications without a pending delivery, incidents of backfills and verifications that are older
 * than `retentionMs`, in batches. The journal keeps everything.
 * @returns the number of deleted rows.
 */
export async function deleteExpired(pool: Pool, retentionMs: number): Promise<number> {
  let deleted = 0;
  for (const statement of statements)
    for (let batches = 0; batches < maxBatches; batches++) {
      const { rowCount } = await pool.query(statement, [retentionMs, batchSize]);
      deleted += rowCount ?? 0;
      if ((rowCount ?? 0) < batchSize) break;
    }
  return deleted;
}
