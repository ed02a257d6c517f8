import type { Connection } from '../journal/database.ts';
import { idFromCause } from '../journal/journal.ts';
import type { NotificationData, NotificationType } from '../notifications/notification.ts';

/** Something that happened, in the terms of what is told of it. */
export interface News extends Omit<NotificationData, 'project_id' | 'batch_export_id' | 'batch_export_name'> {
  readonly type: NotificationType;
  /** What it is news of: the same cause is told once. */
  readonly cause: string;
  readonly team_id: number;
  readonly batch_export_id: string;
}

/** Errors are cut to so many characters in messages. */
const longestError = 4_000;

/**
 * Stores what there is to tell, in the transaction of the event that it tells of, with a delivery to each webhook that
 * wants it. Trouble is remembered until the export works again. Nothing is told of a deleted one. The caller has locked every stream that it needs.
 */
export async function noteTrouble(connection: Connection, news: News): Promise<void> {
  // Taken even where it is there: who notes a recovery at the same time waits, and tells of it after this.
  await connection.query(
    `insert into exportd.troubled_exports (batch_export_id)
     select id from exportd.batch_exports where id = $1 and not deleted
     on conflict (batch_export_id) do update set since = excluded.since`,
    [news.batch_export_id],
  );
  await storeNews(connection, news);
}

/**
 * Tells that an export works again, if trouble was told of it since it did; of two runs that complete at once one finds
 * that. A paused export does not work yet: the first run after its unpause tells.
 */
export async function noteSuccess(connection: Connection, news: Omit<News, 'type'>): Promise<void> {
  const { rowCount } = await connection.query(
    `delete from exportd.troubled_exports troubled using exportd.batch_exports export
     where troubled.batch_export_id = $1 and export.id = $1 and not export.paused and not export.deleted`,
    [news.batch_export_id],
  );
  if (rowCount === 1) await storeNews(connection, { ...news, type: 'batch_export.recovered' });
}

async function storeNews(connection: Connection, news: News): Promise<void> {
  const { type, cause, team_id, batch_export_id, ...members } = news;
  const data: Omit<NotificationData, 'batch_export_name'> = {
    project_id: team_id,
    batch_export_id,
    ...members,
    latest_error: members.latest_error?.slice(0, longestError) ?? null,
  };
  await connection.query(
    `with added as (
       insert into exportd.notifications (id, type, team_id, batch_export_id, run_id, data)
       select $1, $2, $3, $4, $5, $6::jsonb || jsonb_build_object('batch_export_name', name)
       from exportd.batch_exports where id = $4 and not deleted
       on conflict (id) do nothing returning id)
     insert into exportd.webhook_deliveries (notification_id, webhook_id, batch_export_id)
     select added.id, webhook.id, $4 from added cross join exportd.webhooks webhook
     where webhook.team_id = $3 and webhook.enabled and $2 = any(webhook.events)
       and (webhook.batch_export_id is null or webhook.batch_export_id = $4)`,
    [
      idFromCause('notification', type, batch_export_id, cause),
      type,
      team_id,
      batch_export_id,
      news.run_id,
      JSON.stringify(data),
    ],
  );
}

/** Ends what is still to be told of an export that is deleted, and the webhooks that are for it alone. */
export async function dropNewsOf(connection: Connection, batchExportId: string): Promise<void> {
  for (const statement of [
    'delete from exportd.webhooks where batch_export_id = $1',
    `update exportd.webhook_deliveries set status = 'dropped' where batch_export_id = $1 and status = 'pending'`,
    'delete from exportd.troubled_exports where batch_export_id = $1',
  ])
    await connection.query(statement, [batchExportId]);
}
