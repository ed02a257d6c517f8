import { type KeyRing, SecretUnreadable } from '../config/key_ring.ts';
import type { Pool } from '../journal/database.ts';
import { type Delivery, type DeliveryPolicy, nextDeliveryAction, recordAttempt } from './deliveries.ts';
import { describeNotification, type Notification, type NotifiedCondition } from './notification.ts';
import { messageBody, type PayloadSettings } from './message_body.ts';
import { type Attempt, sendWebhook, type WebhookSettings } from './send_webhook.ts';
import { openWebhookSecret, openWebhookUrl } from './webhooks.ts';

/** Result of one call of `DeliverNotification`. */
export interface DeliveryOutcome extends Attempt {
  /** Whether the delivery needs no further call. */
  readonly ended: boolean;
  /** Milliseconds until the next call. */
  readonly wait_ms: number;
  /** Status line for the Temporal UI. */
  readonly summary: string;
}

/** Sends the message of a delivery if it is due, and records the result. */
export type DeliverNotification = (deliveryId: string) => Promise<DeliveryOutcome>;

type DelivererSettings = DeliveryPolicy & WebhookSettings & PayloadSettings;

/** Reads the condition of an export; undefined if it was deleted. */
type ReadCondition = (batchExportId: string) => Promise<NotifiedCondition | undefined>;

/** Creates the function that delivers notifications of a control database. Only workers can open webhook secrets. */
export const createDeliverer =
  (
    pool: Pool,
    keyRing: KeyRing,
    settings: DelivererSettings,
    readCondition: ReadCondition,
  ): DeliverNotification =>
  async (deliveryId) => {
    const action = await nextDeliveryAction(pool, deliveryId);
    if (action.type === 'stop') return idle(action.reason, { ended: true, wait_ms: 0 });
    if (action.type === 'wait') return idle(action.reason, { ended: false, wait_ms: action.wait_ms });
    const notification = await withCondition(pool, action.delivery.notification, readCondition);
    const delivery = { ...action.delivery, notification };
    const startedAt = performance.now();
    const attempt = await send(delivery, keyRing, settings);
    const duration_ms = Math.round(performance.now() - startedAt);
    const progress = await recordAttempt(pool, settings, delivery, { ...attempt, duration_ms });
    return { ...attempt, ...progress, summary: summaryOf(delivery, attempt) };
  };

/**
 * Adds the condition of the export to a message that reports an incident or its end, once: every attempt and every webhook
 * gets the same message. The event itself cannot say it, because the condition depends on what other streams have recorded.
 */
async function withCondition(
  pool: Pool,
  notification: Notification,
  readCondition: ReadCondition,
): Promise<Notification> {
  const { id, type, data } = notification;
  if (type === 'interval.published' || data.batch_export_id === null || data.condition !== null)
    return notification;
  const condition = await readCondition(data.batch_export_id);
  if (!condition) return notification;
  const { severity, cause, summary, since, owner } = condition;
  const { rows } = await pool.query<Pick<Notification, 'data'>>(
    `update exportd.notifications set data = case when data->'condition' = 'null' then
       data || jsonb_build_object('condition', $2::jsonb) else data end where id = $1 returning data`,
    [id, JSON.stringify({ severity, cause, summary, since, owner })],
  );
  return { ...notification, data: rows[0]?.data ?? data };
}

const idle = (reason: string, progress: { readonly ended: boolean; readonly wait_ms: number }) => ({
  ...progress,
  delivered: false,
  status: null,
  detail: reason,
  summary: reason,
});

async function send(
  { notification, webhook }: Delivery,
  keyRing: KeyRing,
  settings: DelivererSettings,
): Promise<Attempt> {
  const secret = openWebhookSecret(keyRing, webhook.id, webhook.sealed_secret);
  const url = openWebhookUrl(keyRing, webhook.id, webhook.sealed_url);
  // No attempt that counts: another worker may have the key, or the operator restores it.
  if (secret === undefined || url === undefined)
    throw new SecretUnreadable(
      'EXPORTD_ENCRYPTION_KEYS does not contain the key of a webhook, or it does not decrypt its secret.',
    );
  return sendWebhook(
    {
      id: notification.id,
      url,
      secret,
      body: messageBody(webhook.format, notification, settings, url),
    },
    settings,
  );
}

const summaryOf = ({ notification, webhook, attempts }: Delivery, { delivered, detail }: Attempt): string =>
  `${webhook.origin} ${delivered ? 'was notified' : 'could not be notified'}: ` +
  `${describeNotification(notification)}. ${detail} Attempt ${attempts + 1}.`;
