import type { Pool } from '../journal/database.ts';
import type { Notification, NotificationData, NotificationType } from './notification.ts';
import type { PayloadFormat } from './message_body.ts';

export const deliveryStatuses = ['pending', 'delivered', 'failed', 'dropped'] as const;
type DeliveryStatus = (typeof deliveryStatuses)[number];

/** An entry of a webhook's delivery log. */
export interface LoggedDelivery {
  readonly id: string;
  readonly notification_id: string;
  readonly event: NotificationType;
  readonly data: NotificationData;
  readonly status: DeliveryStatus;
  /** The result of the latest attempt, or why it was dropped; null before the first attempt. */
  readonly detail: string | null;
  readonly attempts: number;
  readonly resend_of: string | null;
  readonly created_at: string;
  /** Null unless it is pending. */
  readonly next_attempt_at: string | null;
  /** Null while it is pending. */
  readonly ended_at: string | null;
}

interface LoggedAttempt {
  readonly number: number;
  readonly at: string;
  readonly duration_ms: number;
  readonly status: number | null;
  readonly detail: string;
}

/** A delivery with everything that the log has of it. */
interface DetailedDelivery extends LoggedDelivery {
  readonly format: PayloadFormat;
  readonly notification: Notification;
  /** Oldest first. */
  readonly attempt_log: readonly LoggedAttempt[];
}

/** Which deliveries of a webhook are listed; undefined fields do not restrict them. */
interface DeliveryFilter {
  readonly statuses: readonly DeliveryStatus[] | undefined;
  readonly events: readonly NotificationType[] | undefined;
  readonly batch_export: string | undefined;
}

const columns = `delivery.id, delivery.notification_id, notification.type as event, notification.data,
  delivery.status, delivery.detail, delivery.attempts, delivery.resend_of, delivery.created_at, delivery.ended_at,
  case when delivery.status = 'pending' then delivery.next_attempt_at end as next_attempt_at`;
const tables = `exportd.webhook_deliveries delivery
  join exportd.notifications notification on notification.id = delivery.notification_id`;

/** Returns a page of a webhook's deliveries, newest first. */
export async function listDeliveries(
  pool: Pool,
  webhookId: string,
  { statuses, events, batch_export }: DeliveryFilter,
  window: { readonly limit: number; readonly offset: number },
): Promise<{ count: number; results: LoggedDelivery[] }> {
  const conditions = `delivery.webhook_id = $1 and ($2::text[] is null or delivery.status = any($2))
    and ($3::text[] is null or notification.type = any($3)) and ($4::uuid is null or delivery.batch_export_id = $4)`;
  const values = [webhookId, statuses ?? null, events ?? null, batch_export ?? null];
  const counted = await pool.query<{ count: number }>(
    `select count(*) as count from ${tables} where ${conditions}`,
    values,
  );
  const { rows } = await pool.query<LoggedDelivery>(
    `select ${columns} from ${tables} where ${conditions}
     order by delivery.created_at desc, delivery.id limit $5 offset $6`,
    [...values, window.limit, window.offset],
  );
  return { count: counted.rows[0]?.count ?? 0, results: rows };
}

/** Returns a delivery of a webhook with its attempts; undefined without one. */
export async function findDelivery(
  pool: Pool,
  webhookId: string,
  id: string,
): Promise<DetailedDelivery | undefined> {
  const { rows } = await pool.query<LoggedDelivery & { format: PayloadFormat; notified_at: string }>(
    `select ${columns}, webhook.format, notification.created_at as notified_at from ${tables}
     join exportd.webhooks webhook on webhook.id = delivery.webhook_id
     where delivery.webhook_id = $1 and delivery.id = $2`,
    [webhookId, id],
  );
  const [row] = rows;
  if (!row) return undefined;
  const attempts = await pool.query<LoggedAttempt>(
    `select number, attempted_at as at, duration_ms, status, detail from exportd.webhook_attempts
     where delivery_id = $1 order by number`,
    [id],
  );
  const { notified_at: created_at, ...delivery } = row;
  const { notification_id, event: type, data } = delivery;
  return {
    ...delivery,
    notification: { id: notification_id, type, data, created_at },
    attempt_log: attempts.rows,
  };
}
