import type { Connection } from '../journal/database.ts';
import { deterministicId } from '../journal/journal.ts';
import { maxPendingDeliveries } from './deliveries.ts';
import {
  type CompletedBackfill,
  noManifest,
  type NotificationData,
  type NotificationType,
  type PublishedManifest,
} from './notification.ts';

/** A notification to store. */
export interface NewNotification extends Omit<
  NotificationData,
  'project_id' | 'batch_export_id' | 'batch_export_name' | 'backfill' | 'condition' | keyof PublishedManifest
> {
  readonly type: NotificationType;
  /** Identifies what it reports: each cause is notified once. */
  readonly cause: string;
  readonly team_id: number;
  readonly batch_export_id: string;
  /** Only of `interval.published`. */
  readonly manifest?: PublishedManifest;
  /** Only of `backfill.completed`. */
  readonly backfill?: CompletedBackfill;
  /** Leaves out the webhooks of the project, which have got the same message about another export. */
  readonly onlyOwnWebhooks?: boolean;
}

/** Errors in messages are truncated to this number of characters. */
const maxErrorLength = 4_000;

/** The condition that a webhook receives events of a type, by SQL expressions. */
export const isSubscribed = ({
  type,
  team,
  batchExport,
}: Readonly<Record<'type' | 'team' | 'batchExport', string>>) =>
  `webhook.team_id = ${team} and webhook.enabled and ${type} = any(webhook.events)
      and (webhook.batch_export_id is null or webhook.batch_export_id = ${batchExport})`;

/**
 * Stores a notification with a delivery to each subscribed webhook, in the transaction of the event that it reports. Once
 * per cause; deleted exports have only the end of their incidents. `interval.published` is stored only while a webhook subscribes to it. A webhook that
 * has too many pending deliveries gets one that is dropped, so that its log shows what it missed.
 * @returns whether there is a delivery
 */
export async function storeNotification(
  connection: Connection,
  notification: NewNotification,
): Promise<boolean> {
  const {
    type,
    cause,
    team_id,
    batch_export_id,
    manifest,
    backfill = null,
    onlyOwnWebhooks = false,
    ...fields
  } = notification;
  const data: Omit<NotificationData, 'batch_export_name' | 'condition'> = {
    project_id: team_id,
    batch_export_id,
    ...fields,
    latest_error: fields.latest_error?.slice(0, maxErrorLength) ?? null,
    backfill,
    ...(manifest ?? noManifest),
  };
  const { rowCount } = await connection.query({
    name: 'store-notification',
    text: storeStatement,
    values: [
      deterministicId('notification', type, batch_export_id, cause),
      type,
      team_id,
      batch_export_id,
      notification.run_id,
      JSON.stringify(data),
      onlyOwnWebhooks,
    ],
  });
  return (rowCount ?? 0) > 0;
}

/** Only `interval.published` is limited: failures are few, since an export that fails is paused. */
const storeStatement = `with subscribed as (
    select webhook.id, $2 = 'interval.published' and (
        select count(*) from (
          select from exportd.webhook_deliveries waiting
          where waiting.webhook_id = webhook.id and waiting.status = 'pending' limit ${maxPendingDeliveries}) pending
      ) = ${maxPendingDeliveries} as is_full
    from exportd.webhooks webhook
    where ${isSubscribed({ type: '$2', team: '$3', batchExport: '$4' })}
      and (webhook.batch_export_id is not null or not $7)
    -- Waits for a request that deletes the webhook, whose deliveries cannot be stored.
    for key share of webhook),
  added as (
    insert into exportd.notifications (id, type, team_id, batch_export_id, run_id, data)
    select $1, $2, $3, $4, $5, $6::jsonb || jsonb_build_object('batch_export_name', name, 'condition', null)
    from exportd.batch_exports where id = $4 and (not deleted or $6::jsonb #>> '{incident, closed_at}' is not null)
      and ($2 <> 'interval.published' or exists (select from subscribed))
    on conflict (id) do nothing returning id)
  insert into exportd.webhook_deliveries (notification_id, webhook_id, batch_export_id, status, detail, ended_at)
  select added.id, subscribed.id, $4,
    case when is_full then 'dropped' else 'pending' end,
    case when is_full then 'The webhook already had ${maxPendingDeliveries.toLocaleString('en')} pending deliveries.' end,
    case when is_full then clock_timestamp() end
  from added cross join subscribed`;
