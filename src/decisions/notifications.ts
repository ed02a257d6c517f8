import type { Connection } from '../journal/database.ts';
import { deterministicId } from '../journal/journal.ts';
import type { NotificationData, NotificationType } from '../notifications/notification.ts';

/** Something that happened, in the terms of what is told of it. */
export interface NewNotification extends Omit<
  NotificationData,
  'project_id' | 'batch_export_id' | 'batch_export_name'
> {
  readonly type: NotificationType;
  /** What it is news of: the same cause is told once. */
  readonly cause: string;
  readonly team_id: number;
  readonly batch_export_id: string;
}

/** Errors are cut to so many characters in messages. */
const maxErrorLength = 4_000;

/** News of an interval: of a run, or of the latest run of those that led to a pause. */
type NewIntervalNotification = NewNotification & NotifiedInterval;
interface NotifiedInterval {
  readonly data_interval_start: string;
  readonly data_interval_end: string;
}

/**
 * Stores what there is to tell, in the transaction of the event that it tells of, with a delivery to each webhook that
 * wants it. Trouble is remembered, as the schedule's or as the backfill's, until that one works again. Nothing is told of
 * a deleted export. The caller has locked every stream that it needs.
 */
export async function openIncident(connection: Connection, news: NewIntervalNotification): Promise<void> {
  // Taken even where it is there: who notes a recovery at the same time waits, and tells of it after this.
  await connection.query(
    `insert into exportd.incidents (batch_export_id, owner_id, data_interval_start, data_interval_end)
     select id, $2, $3, $4 from exportd.batch_exports where id = $1 and not deleted
     on conflict (batch_export_id, owner_id, data_interval_start, data_interval_end)
       do update set opened_at = excluded.opened_at`,
    [news.batch_export_id, ownerOf(news), news.data_interval_start, news.data_interval_end],
  );
  await storeNotification(connection, news);
}

/** The schedule, by its export's id, or a backfill. */
const ownerOf = ({
  batch_export_id,
  backfill_id,
}: Pick<NewNotification, 'batch_export_id' | 'backfill_id'>): string => backfill_id ?? batch_export_id;

/**
 * Tells whose trouble a run that completed has ended: all of the schedule or the backfill that it is of, and that which
 * backfills had with its interval. Of two runs that complete at once one finds that. What is paused does not work yet:
 * the first run after its unpause tells.
 */
export async function resolveIncidents(
  connection: Connection,
  news: Omit<NewIntervalNotification, 'type'>,
): Promise<void> {
  const { batch_export_id, data_interval_start: start, data_interval_end: end } = news;
  const owner = ownerOf(news);
  // All of them wait here for one another, so that the last of an owner's is told by whoever removes it.
  const { rows: concerned } = await connection.query<{ owner_id: string }>({
    name: 'incidents-to-resolve',
    text: `select owner_id from exportd.incidents incident
      join exportd.batch_exports export on export.id = batch_export_id and not export.deleted
      left join exportd.backfills backfill on backfill.id = owner_id
      where incident.batch_export_id = $1 and (owner_id = $2 or owner_id in (
          select other.owner_id from exportd.incidents other where other.batch_export_id = $1
            and other.owner_id <> $1 and other.data_interval_start = $3 and other.data_interval_end = $4))
        and case when owner_id = $1 then not export.paused else backfill.status is distinct from 'Paused' end
      order by owner_id, data_interval_start, data_interval_end for update of incident`,
    values: [batch_export_id, owner, start, end],
  });
  const owners = [...new Set(concerned.map(({ owner_id }) => owner_id))];
  if (owners.length === 0) return;
  await connection.query(
    `delete from exportd.incidents where batch_export_id = $1 and owner_id = any($5)
     and (owner_id = $2 or (data_interval_start = $3 and data_interval_end = $4))`,
    [batch_export_id, owner, start, end, owners],
  );
  const { rows: troubled } = await connection.query<{ owner_id: string }>(
    'select distinct owner_id from exportd.incidents where batch_export_id = $1 and owner_id = any($2)',
    [batch_export_id, owners],
  );
  const left = new Set(troubled.map(({ owner_id }) => owner_id));
  for (const recovered of owners.filter((id) => !left.has(id)))
    await storeNotification(connection, {
      ...news,
      type: 'batch_export.recovered',
      cause: `${news.cause}/${recovered}`,
      backfill_id: recovered === batch_export_id ? null : recovered,
    });
}

async function storeNotification(connection: Connection, news: NewNotification): Promise<void> {
  const { type, cause, team_id, batch_export_id, ...members } = news;
  const data: Omit<NotificationData, 'batch_export_name'> = {
    project_id: team_id,
    batch_export_id,
    ...members,
    latest_error: members.latest_error?.slice(0, maxErrorLength) ?? null,
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
      deterministicId('notification', type, batch_export_id, cause),
      type,
      team_id,
      batch_export_id,
      news.run_id,
      JSON.stringify(data),
    ],
  );
}

/** Ends what is still to be told of an export that is deleted, and the webhooks that are for it alone. */
export async function dropNotifications(connection: Connection, batchExportId: string): Promise<void> {
  for (const statement of [
    'delete from exportd.webhooks where batch_export_id = $1',
    `update exportd.webhook_deliveries set status = 'dropped' where batch_export_id = $1 and status = 'pending'`,
    'delete from exportd.incidents where batch_export_id = $1',
  ])
    await connection.query(statement, [batchExportId]);
}
