import type { Settings } from '../config/settings.ts';
import { type Connection, inTransaction, type Pool } from '../journal/database.ts';
import { writeLogLine } from '../journal/journal.ts';
import { describeNotification, type Notification } from './notification.ts';
import type { PayloadFormat } from './message_body.ts';
import type { Attempt } from './send_webhook.ts';
import { showAttempt } from './webhooks.ts';

export type DeliveryPolicy = Pick<Settings, 'EXPORTD_WEBHOOK_RETRY_INITIAL' | 'EXPORTD_WEBHOOK_RETRY_BUDGET'>;

/** The delay before a delivery is retried doubles up to this, in milliseconds. */
const maxRetryDelayMs = 60 * 60_000;

/** A pending delivery of a notification to a webhook. */
export interface Delivery {
  readonly id: string;
  readonly team_id: number;
  /** Attempts made so far. */
  readonly attempts: number;
  readonly notification: Notification;
  readonly webhook: {
    readonly id: string;
    readonly origin: string;
    readonly sealed_url: string;
    readonly format: PayloadFormat;
    readonly sealed_secret: string;
  };
}

/** Next action for a delivery: send it, wait, or stop because it has ended. */
type DeliveryAction =
  | { readonly type: 'send'; readonly delivery: Delivery }
  | { readonly type: 'wait'; readonly wait_ms: number; readonly reason: string }
  | { readonly type: 'stop'; readonly reason: string };

/**
 * Pending deliveries of a webhook, each of which is a workflow. More notifications of published intervals are stored as
 * dropped.
 */
export const maxPendingDeliveries = 1_000;

const httpGone = 410;
/** A delivery checks no more often whether the delivery before it has ended, in milliseconds. */
const minOrderWaitMs = 1_000;

/**
 * Returns the next action for a delivery. Ends the delivery if its webhook has been disabled. A published interval waits
 * while the webhook has not received an earlier generation of it.
 */
export async function nextDeliveryAction(pool: Pool, deliveryId: string): Promise<DeliveryAction> {
  const { rows } = await pool.query<
    Omit<Delivery, 'notification' | 'webhook'> &
      Notification & {
        status: string;
        wait_ms: number;
        order_wait_ms: number | null;
        notification_id: string;
        webhook_id: string;
        origin: string;
        sealed_url: string;
        format: PayloadFormat;
        secret: string;
        enabled: boolean;
      }
  >(
    `select delivery.id, delivery.status, delivery.attempts, notification.id as notification_id, notification.type,
       notification.data, notification.team_id, notification.created_at, webhook.id as webhook_id,
       webhook.origin, webhook.sealed_url,
       webhook.format, webhook.secret, webhook.enabled,
       ceil(greatest(0, extract(epoch from delivery.next_attempt_at - clock_timestamp()) * 1000))::float8 as wait_ms,
       ${orderWait} as order_wait_ms
     from exportd.webhook_deliveries delivery
     join exportd.notifications notification on notification.id = notification_id
     join exportd.webhooks webhook on webhook.id = webhook_id
     where delivery.id = $1`,
    [deliveryId],
  );
  const [row] = rows;
  if (!row) return { type: 'stop', reason: 'The webhook or the notification was deleted.' };
  if (row.status !== 'pending') return { type: 'stop', reason: `The delivery is ${row.status}.` };
  const { type, data, created_at } = row;
  if (!row.enabled) {
    await pool.query(
      `update exportd.webhook_deliveries
       set status = 'dropped', detail = 'The webhook is disabled.', ended_at = clock_timestamp()
       where id = $1 and status = 'pending'`,
      [deliveryId],
    );
    return { type: 'stop', reason: 'The webhook is disabled.' };
  }
  if (row.wait_ms > 0) return { type: 'wait', wait_ms: row.wait_ms, reason: 'The delivery is not due yet.' };
  if (row.order_wait_ms !== null)
    return {
      type: 'wait',
      wait_ms: Math.max(row.order_wait_ms, minOrderWaitMs),
      reason: 'An earlier generation of the interval is delivered first.',
    };
  return {
    type: 'send',
    delivery: {
      id: row.id,
      team_id: row.team_id,
      attempts: row.attempts,
      notification: { id: row.notification_id, type, data, created_at },
      webhook: {
        id: row.webhook_id,
        origin: row.origin,
        sealed_url: row.sealed_url,
        format: row.format,
        sealed_secret: row.secret,
      },
    },
  };
}

/** Milliseconds until the next attempt of an earlier generation's delivery; negative while it is attempted, null if none. */
const orderWait = `(
  select ceil(extract(epoch from min(earlier.next_attempt_at) - clock_timestamp()) * 1000)::float8
  from exportd.webhook_deliveries earlier
  join exportd.notifications published on published.id = earlier.notification_id
  where notification.type = 'interval.published' and published.type = 'interval.published'
    and earlier.webhook_id = delivery.webhook_id and earlier.status = 'pending'
    and earlier.batch_export_id = delivery.batch_export_id
    and published.data->>'data_interval_start' = notification.data->>'data_interval_start'
    and published.data->>'data_interval_end' = notification.data->>'data_interval_end'
    and (published.data->>'generation')::integer < (notification.data->>'generation')::integer)`;

/**
 * Records an attempt in the delivery and its webhook. The first failure, the last one and the success also go to the log
 * of the export, except that of a published interval, which is no incident. A response of 410 disables the webhook.
 * @returns whether the delivery has ended, and how long it waits for the next attempt
 */
export async function recordAttempt(
  pool: Pool,
  policy: DeliveryPolicy,
  delivery: Delivery,
  attempt: Attempt & { readonly duration_ms: number },
): Promise<{ readonly ended: boolean; readonly wait_ms: number }> {
  return inTransaction(pool, async (connection) => {
    const isGone = attempt.status === httpGone;
    if (!(await showAttempt(connection, delivery.webhook.id, attempt))) return { ended: true, wait_ms: 0 };
    if (isGone)
      await connection.query('update exportd.webhooks set enabled = false where id = $1', [
        delivery.webhook.id,
      ]);
    const waitMs = Math.min(
      policy.EXPORTD_WEBHOOK_RETRY_INITIAL * 2 ** Math.min(delivery.attempts, 30),
      maxRetryDelayMs,
    );
    const { rows } = await connection.query<{ status: 'pending' | 'delivered' | 'failed' }>(
      `with recorded as (
         update exportd.webhook_deliveries set attempts = attempts + 1, detail = $7,
           next_attempt_at = clock_timestamp() + $2 * interval '1 millisecond',
           status = outcome, ended_at = case when outcome <> 'pending' then clock_timestamp() end
         from (select case
             when $3 then 'delivered'
             when $4 or clock_timestamp() + $2 * interval '1 millisecond' > created_at + $5 * interval '1 millisecond'
               then 'failed'
             else 'pending' end as outcome
           from exportd.webhook_deliveries where id = $1) decided
         where id = $1 and status = 'pending' returning id, status, attempts),
       attempted as (
         insert into exportd.webhook_attempts (delivery_id, number, duration_ms, status, detail)
         select id, attempts, $8, $6, $7 from recorded)
       select status from recorded`,
      [
        delivery.id,
        waitMs,
        attempt.delivered,
        isGone,
        policy.EXPORTD_WEBHOOK_RETRY_BUDGET,
        attempt.status,
        attempt.detail,
        attempt.duration_ms,
      ],
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
  if (delivered && notification.type === 'interval.published') return;
  // The id distinguishes webhooks of the same host.
  const name = `Webhook ${webhook.id} (${webhook.origin})`;
  const description = describeNotification(notification);
  const next =
    outcome === 'pending'
      ? 'Retrying.'
      : status === httpGone
        ? 'The webhook has been disabled.'
        : 'No more attempts.';
  await writeLogLine(connection, {
    team_id,
    batch_export_id,
    run_id,
    level: delivered ? 'INFO' : outcome === 'failed' ? 'ERROR' : 'WARNING',
    message: delivered
      ? `${name} was notified: ${description}.`
      : `${name} could not be notified: ${description}. ${detail} ${next}`,
  });
}

/** Deliveries that the end of one run starts; a run must not wait for more. */
const maxNewDeliveries = 200;

/** Ids of an export's deliveries of the last minute without an attempt. The reconciler starts older ones. */
export const newDeliveries = (pool: Pool, batchExportId: string): Promise<string[]> =>
  ids(
    pool,
    `select id from exportd.webhook_deliveries
     where batch_export_id = $1 and status = 'pending' and attempts = 0
       and created_at > clock_timestamp() - interval '1 minute'
     order by created_at limit ${maxNewDeliveries}`,
    [batchExportId],
  );

/** Ids of up to 100,000 due deliveries, longest overdue first. */
export const dueDeliveries = (pool: Pool): Promise<string[]> =>
  ids(
    pool,
    `select id from exportd.webhook_deliveries where status = 'pending' and next_attempt_at <= clock_timestamp()
     order by next_attempt_at limit 100000`,
    [],
  );

/** Those of the given deliveries that were dropped or deleted, so that their workflows must be cancelled. */
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

/**
 * What a resend did. `created`: a new delivery of the notification. `advanced`: the pending one, which waited for its next
 * attempt, is due now. `due`: it was due already. The others did nothing.
 */
type Resend =
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
      'select notification_id from exportd.webhook_deliveries where id = $1 and webhook_id = $2',
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
