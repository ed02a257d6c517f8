import type { Settings } from '../config/settings.ts';
import { inTransaction, type Connection, type Pool } from '../journal/database.ts';
import { writeLogLine } from '../journal/log_lines.ts';
import { describeNotification, type Notification } from './notification.ts';
import type { Attempt } from './send_webhook.ts';

/** How long and how often it is tried to tell a webhook something. */
export type DeliveryPolicy = Pick<
  Settings,
  'EXPORTD_WEBHOOK_RETRY_INITIAL' | 'EXPORTD_WEBHOOK_RETRY_MAX' | 'EXPORTD_WEBHOOK_RETRY_BUDGET'
>;

/** A notification on its way to a webhook. */
export interface Delivery {
  readonly id: string;
  readonly team_id: number;
  /** How often it was tried already. */
  readonly attempts: number;
  readonly notification: Notification;
  readonly webhook: { readonly id: string; readonly url: string; readonly sealed_secret: string };
}

/** What there is to do for a delivery: send it, wait, or nothing ever again. */
export type DeliveryAction =
  | { readonly do: 'send'; readonly delivery: Delivery }
  | { readonly do: 'wait'; readonly wait_ms: number }
  | { readonly do: 'nothing'; readonly reason: string };

/** How a delivery stands after an attempt. */
export interface DeliveryProgress {
  readonly ended: boolean;
  /** Until the next attempt. */
  readonly wait_ms: number;
}

const httpGone = 410;

/** The webhook as it is named in the log: without what follows the host, which may be as good as a password. */
export const webhookName = (url: string): string => (URL.canParse(url) ? new URL(url).origin : 'of no URL');

/** What there is to do for a delivery now. That of a webhook which was disabled meanwhile ends here. */
export async function nextDeliveryAction(pool: Pool, deliveryId: string): Promise<DeliveryAction> {
  const { rows } = await pool.query<
    Omit<Delivery, 'notification' | 'webhook'> &
      Notification & {
        status: string;
        wait_ms: number;
        notification_id: string;
        webhook_id: string;
        url: string;
        secret: string;
        enabled: boolean;
      }
  >(
    `select delivery.id, delivery.status, delivery.attempts, notification.id as notification_id, notification.type,
       notification.data, notification.team_id, notification.created_at, webhook.id as webhook_id, webhook.url,
       webhook.secret, webhook.enabled,
       ceil(greatest(0, extract(epoch from delivery.next_attempt_at - clock_timestamp()) * 1000))::float8 as wait_ms
     from exportd.webhook_deliveries delivery
     join exportd.notifications notification on notification.id = notification_id
     join exportd.webhooks webhook on webhook.id = webhook_id
     where delivery.id = $1`,
    [deliveryId],
  );
  const [row] = rows;
  if (!row) return { do: 'nothing', reason: 'The webhook or the notification is gone.' };
  if (row.status !== 'pending') return { do: 'nothing', reason: `The delivery is ${row.status}.` };
  const { type, data, created_at } = row;
  if (!row.enabled && type !== 'test') {
    await pool.query(
      `update exportd.webhook_deliveries set status = 'dropped' where id = $1 and status = 'pending'`,
      [deliveryId],
    );
    return { do: 'nothing', reason: 'The webhook is disabled.' };
  }
  if (row.wait_ms > 0) return { do: 'wait', wait_ms: row.wait_ms };
  return {
    do: 'send',
    delivery: {
      id: row.id,
      team_id: row.team_id,
      attempts: row.attempts,
      notification: { id: row.notification_id, type, data, created_at },
      webhook: { id: row.webhook_id, url: row.url, sealed_secret: row.secret },
    },
  };
}

/**
 * Records an attempt: the delivery ends or is due again later, the webhook shows it, the log of the export says how it
 * went, at the first failure, at the last and at the success. A receiver that is gone for good is told nothing more,
 * unless it only said so to a test: whoever tries a webhook is told at once, and decides.
 */
export async function recordAttempt(
  pool: Pool,
  policy: DeliveryPolicy,
  delivery: Delivery,
  attempt: Attempt,
): Promise<DeliveryProgress> {
  return inTransaction(pool, async (connection) => {
    const test = delivery.notification.type === 'test';
    const disable = attempt.status === httpGone && !test;
    const webhook = await connection.query(
      `update exportd.webhooks set enabled = enabled and not $2, last_attempt_at = clock_timestamp(),
         last_attempt_status = $3, last_attempt_detail = $4 where id = $1`,
      [delivery.webhook.id, disable, attempt.status, attempt.detail],
    );
    if (webhook.rowCount === 0) return { ended: true, wait_ms: 0 };
    const waitMs = Math.min(
      policy.EXPORTD_WEBHOOK_RETRY_INITIAL * 2 ** Math.min(delivery.attempts, 30),
      policy.EXPORTD_WEBHOOK_RETRY_MAX,
    );
    const once = disable || test;
    const { rows } = await connection.query<{ status: 'pending' | 'delivered' | 'failed' }>(
      `update exportd.webhook_deliveries set attempts = attempts + 1,
         next_attempt_at = clock_timestamp() + $2 * interval '1 millisecond',
         status = case
           when $3 then 'delivered'
           when $4 or clock_timestamp() + $2 * interval '1 millisecond' > created_at + $5 * interval '1 millisecond'
             then 'failed'
           else 'pending' end
       where id = $1 and status = 'pending' returning status`,
      [delivery.id, waitMs, attempt.delivered, once, policy.EXPORTD_WEBHOOK_RETRY_BUDGET],
    );
    const [recorded] = rows;
    if (!recorded) return { ended: true, wait_ms: 0 };
    await logAttempt(connection, delivery, attempt, recorded.status);
    return { ended: recorded.status !== 'pending', wait_ms: waitMs };
  });
}

async function logAttempt(
  connection: Connection,
  { team_id, attempts, notification, webhook }: Delivery,
  { delivered, detail, status }: Attempt,
  outcome: 'pending' | 'delivered' | 'failed',
): Promise<void> {
  const { batch_export_id, run_id } = notification.data;
  if (batch_export_id === null || (outcome === 'pending' && attempts > 0)) return;
  // Two webhooks may have the same host.
  const name = `Webhook ${webhook.id} (${webhookName(webhook.url)})`;
  const description = describeNotification(notification);
  const next =
    outcome === 'pending'
      ? 'It is tried again.'
      : status === httpGone
        ? 'The webhook was disabled.'
        : 'It is not tried any more.';
  await writeLogLine(connection, {
    team_id,
    batch_export_id,
    run_id,
    level: delivered ? 'INFO' : outcome === 'failed' ? 'ERROR' : 'WARNING',
    message: delivered
      ? `${name} was told that ${description}.`
      : `${name} could not be told that ${description}. ${detail} ${next}`,
  });
}

/** Deliveries of an export that nobody has tried yet. */
export const newDeliveries = (pool: Pool, batchExportId: string): Promise<string[]> =>
  ids(
    pool,
    `select id from exportd.webhook_deliveries where batch_export_id = $1 and status = 'pending' and attempts = 0
     order by created_at`,
    [batchExportId],
  );

/** Deliveries that should be under way: those that are due, the oldest first, so many at a time; tests are not waited for. */
export const dueDeliveries = (pool: Pool): Promise<string[]> =>
  ids(
    pool,
    `select id from exportd.webhook_deliveries where status = 'pending' and next_attempt_at <= clock_timestamp() and batch_export_id is not null
     order by next_attempt_at limit 1000`,
    [],
  );

/** Those of the given deliveries that ended before anybody could say so to their workflow. */
export const droppedDeliveries = (pool: Pool, deliveryIds: readonly string[]): Promise<string[]> =>
  ids(
    pool,
    `select given.id from unnest($1::uuid[]) as given (id)
     where not exists (
       select from exportd.webhook_deliveries delivery where delivery.id = given.id and delivery.status <> 'dropped')`,
    [deliveryIds],
  );

async function ids(pool: Pool, statement: string, values: readonly unknown[]): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>(statement, [...values]);
  return rows.map(({ id }) => id);
}
