import type { StoredRows } from '../journal/stored_rows.ts';

/** Notifications with their deliveries, incidents and the webhooks of a single export. */
export const notificationRows: StoredRows = {
  tables: ['incidents', 'notified_conditions', 'notifications', 'webhooks'],
  expired: [
    `delete from exportd.notifications where id in (
       select id from exportd.notifications notification
       where created_at < clock_timestamp() - $1 * interval '1 millisecond' and not exists (
         select from exportd.webhook_deliveries delivery
         where delivery.notification_id = notification.id and delivery.status = 'pending')
       order by created_at limit $2)`,
    // Incidents of a schedule stay open until it recovers. A backfill may never complete another run, so its own expire.
    `delete from exportd.incidents where (batch_export_id, owner_id, data_interval_start, data_interval_end) in (
       select batch_export_id, owner_id, data_interval_start, data_interval_end from exportd.incidents
       where owner_id <> batch_export_id and opened_at < clock_timestamp() - $1 * interval '1 millisecond'
       order by opened_at limit $2)`,
  ],
};
