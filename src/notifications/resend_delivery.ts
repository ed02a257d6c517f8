import { inTransaction, type Connection, type Pool } from '../journal/database.ts';
import { maxPendingDeliveries } from './deliveries.ts';

/**
 * What a resend did. `created`: a new delivery of the notification. `advanced`: the pending one, which waited for its next
 * attempt, is due now. `due`: it was due already. The others did nothing.
 */
export type Resend =
  | { readonly outcome: 'created' | 'advanced' | 'due'; readonly delivery_id: string }
  | { readonly outcome: 'not_found' | 'disabled' | 'full' };

/**
 * Sends the notification of a delivery again, with the same message and id. A pending delivery of it is attempted now
 * instead, so a notification has one pending delivery for each webhook.
 */
export const resendDelivery = (pool: Pool, webhookId: string, deliveryId: string): Promise<Resend> =>
  inTransaction(pool, async (connection) => {
    // The lock lets concurrent requests neither exceed the limit nor create two deliveries.
    const { rows: webhooks } = await connection.query<{ enabled: boolean }>(
      'select enabled from exportd.webhooks where id = $1 for update',
      [webhookId],
    );
    const { rows } = await connection.query<{ notification_id: string }>(
      `select notification_id from exportd.webhook_deliveries delivery
       join exportd.notifications notification on notification.id = notification_id
       where delivery.id = $1 and webhook_id = $2 and notification.type <> 'test'`,
      [deliveryId, webhookId],
    );
    const [webhook, found] = [webhooks[0], rows[0]];
    if (!webhook || !found) return { outcome: 'not_found' };
    if (!webhook.enabled) return { outcome: 'disabled' };
    const pending = await advancePending(connection, webhookId, found.notification_id);
    if (pending) return pending;
    const { rows: created } = await connection.query<{ id: string }>(
      `insert into exportd.webhook_deliveries (notification_id, webhook_id, batch_export_id, resend_of)
       select notification_id, webhook_id, batch_export_id, id from exportd.webhook_deliveries
       where id = $1 and (
         select count(*) from exportd.webhook_deliveries where webhook_id = $2 and status = 'pending') < $3
       returning id`,
      [deliveryId, webhookId, maxPendingDeliveries],
    );
    return created[0] ? { outcome: 'created', delivery_id: created[0].id } : { outcome: 'full' };
  });

/** Makes the pending delivery of a notification due; undefined without one. */
async function advancePending(
  connection: Connection,
  webhookId: string,
  notificationId: string,
): Promise<Resend | undefined> {
  const { rows } = await connection.query<{ id: string; waited: boolean }>(
    `update exportd.webhook_deliveries delivery set next_attempt_at = least(before.next_attempt_at, clock_timestamp())
     from (select id, next_attempt_at from exportd.webhook_deliveries
           where webhook_id = $1 and notification_id = $2 and status = 'pending' for update) before
     where delivery.id = before.id
     returning delivery.id, before.next_attempt_at > clock_timestamp() as waited`,
    [webhookId, notificationId],
  );
  const [pending] = rows;
  return pending && { outcome: pending.waited ? 'advanced' : 'due', delivery_id: pending.id };
}
