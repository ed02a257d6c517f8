import type { Pool } from '../../src/journal/database.ts';
import type { NotificationData } from '../../src/notifications/notification.ts';

/** A notification as it is stored. */
interface ReadNotification {
  readonly type: string;
  readonly run_id: string | null;
  readonly data: NotificationData;
}

/** Reads the notifications about an export, oldest first, or those of one type. */
export async function readNotifications(
  pool: Pool,
  batchExportId: string,
  type?: string,
): Promise<ReadNotification[]> {
  const { rows } = await pool.query<ReadNotification>(
    'select type, run_id, data from exportd.notifications where batch_export_id = $1 order by created_at',
    [batchExportId],
  );
  return type === undefined ? rows : rows.filter((row) => row.type === type);
}

/** The delivery of a notification to a webhook. */
interface ReadDelivery extends Pick<ReadNotification, 'type' | 'data'> {
  readonly id: string;
  readonly webhook_id: string;
  readonly status: string;
  readonly detail: string | null;
  readonly attempts: number;
}

/** Reads the deliveries of the notifications about an export, oldest first. */
export async function readDeliveries(pool: Pool, batchExportId: string): Promise<ReadDelivery[]> {
  const { rows } = await pool.query<ReadDelivery>(
    `select delivery.id, webhook_id, status, detail, attempts, type, data from exportd.webhook_deliveries delivery
     join exportd.notifications notification on notification.id = notification_id
     where delivery.batch_export_id = $1 order by delivery.created_at`,
    [batchExportId],
  );
  return rows;
}
