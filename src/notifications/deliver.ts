import type { KeyRing } from '../config/key_ring.ts';
import {
  recordAttempt,
  nextDeliveryAction,
  webhookName,
  type Delivery,
  type DeliveryPolicy,
} from './deliveries.ts';
import type { Pool } from '../journal/database.ts';
import { messageBody, describeNotification } from './notification.ts';
import { sendWebhook, type Attempt, type WebhookSettings } from './send_webhook.ts';
import { openWebhookSecret } from './webhook_secret.ts';

/** What became of one turn of a delivery. */
export interface DeliveryOutcome extends Attempt {
  /** Whether nothing more is to be done. */
  readonly ended: boolean;
  /** Milliseconds until the next turn. */
  readonly wait_ms: number;
  /** The line for the Temporal UI. */
  readonly summary: string;
}

/** Takes a delivery's turn: sends its message if it is due, and records what became of it. */
export type DeliverNotification = (deliveryId: string) => Promise<DeliveryOutcome>;

/** Delivers from a control database. Only workers do: they open the webhooks' secrets. */
export const createDeliverer =
  (pool: Pool, keyRing: KeyRing, settings: DeliveryPolicy & WebhookSettings): DeliverNotification =>
  async (deliveryId) => {
    const action = await nextDeliveryAction(pool, deliveryId);
    if (action.do === 'nothing') return idle(action.reason, { ended: true, wait_ms: 0 });
    if (action.do === 'wait') return idle('It is not due yet.', { ended: false, wait_ms: action.wait_ms });
    const { delivery } = action;
    const attempt = await send(delivery, keyRing, settings);
    const progress = await recordAttempt(pool, settings, delivery, attempt);
    return { ...attempt, ...progress, summary: summaryOf(delivery, attempt) };
  };

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
  settings: WebhookSettings,
): Promise<Attempt> {
  const secret = openWebhookSecret(keyRing, webhook.id, webhook.sealed_secret);
  // The key ring may get the missing key back before it is given up.
  if (secret === undefined)
    return {
      delivered: false,
      status: null,
      detail: "The webhook's secret cannot be read with the keys that this installation has.",
    };
  return sendWebhook(
    { id: notification.id, url: webhook.url, secret, body: messageBody(notification) },
    settings,
  );
}

const summaryOf = ({ notification, webhook, attempts }: Delivery, { delivered, detail }: Attempt): string =>
  `${webhookName(webhook.url)} ${delivered ? 'was told' : 'could not be told'} that ${describeNotification(notification)}. ` +
  `${detail} Attempt ${attempts + 1}.`;
