import { type Connection, inTransaction, type Pool } from '../journal/database.ts';
import { notClosed, type NotifiedIncident, type PublishedManifest, withoutRun } from './notification.ts';
import { isSubscribed, type NewNotification, storeNotification } from './store_notification.ts';

/** A notification about the interval of a run, or of the latest run that led to a pause. */
type NewIntervalNotification = NewNotification & {
  readonly data_interval_start: string;
  readonly data_interval_end: string;
};

/**
 * Opens an incident of the schedule or backfill and stores its notification, with a delivery to each subscribed webhook,
 * in the transaction of the event that it reports. The incident stays open until its owner recovers. Deleted exports
 * have neither.
 * @returns whether there is a delivery
 */
export async function openIncident(
  connection: Connection,
  notification: Omit<NewIntervalNotification, 'incident'>,
): Promise<boolean> {
  // Updates an existing row too, to lock it: a concurrent recovery waits and is notified after this failure.
  await connection.query(
    `insert into exportd.incidents (batch_export_id, owner_id, data_interval_start, data_interval_end, incident_id)
     select id, $2, $3, $4, coalesce((select incident_id from exportd.incidents where batch_export_id = $1 and owner_id = $2
       limit 1), gen_random_uuid())
     from exportd.batch_exports where id = $1 and not deleted
     on conflict (batch_export_id, owner_id, data_interval_start, data_interval_end)
       do update set opened_at = excluded.opened_at`,
    [
      notification.batch_export_id,
      ownerOf(notification),
      notification.data_interval_start,
      notification.data_interval_end,
    ],
  );
  const { rows } = await connection.query<OpenIncident>(
    `select ${incidentColumns} from exportd.incidents where batch_export_id = $1 and owner_id = $2 group by incident_id`,
    [notification.batch_export_id, ownerOf(notification)],
  );
  return storeNotification(connection, { ...notification, incident: rows[0] ? incidentOf(rows[0]) : null });
}

/** The intervals of an owner that failed and have not recovered. */
interface OpenIncident {
  readonly incident_id: string;
  readonly intervals: number;
  readonly opened_at: string;
}

/** SQL: the fields of an `OpenIncident`, as aggregates. */
const incidentColumns = 'incident_id, count(*)::int as intervals, min(opened_at) as opened_at';

const incidentOf = (
  { incident_id, intervals, opened_at }: OpenIncident,
  { closed_at, closed_by }: Pick<NotifiedIncident, 'closed_at' | 'closed_by'> = notClosed,
): NotifiedIncident => ({
  id: incident_id,
  cause: 'failed',
  subject: null,
  exports: 1,
  intervals,
  opened_at: new Date(opened_at).toISOString(),
  closed_at,
  closed_by,
});

/** Owner of an incident: the backfill, or the export for its schedule. */
const ownerOf = ({
  batch_export_id,
  backfill_id,
}: Pick<NewNotification, 'batch_export_id' | 'backfill_id'>): string => backfill_id ?? batch_export_id;

/** A run that completed its interval, and what it published; null if that was unchanged. */
type Completion = Omit<NewIntervalNotification, 'type' | 'manifest' | 'incident'> & {
  readonly manifest: PublishedManifest | null;
};

/**
 * Stores what a completed run notifies: recoveries, and `interval.published`. A run without open incidents, in a project
 * without a webhook for published intervals, costs one statement.
 * @returns whether there is a delivery
 */
export async function notifyOfCompletion(
  connection: Connection,
  { manifest, ...notification }: Completion,
): Promise<boolean> {
  const { team_id, batch_export_id, data_interval_start: start, data_interval_end: end } = notification;
  // Concurrent completions wait for each other here, so exactly one of them resolves an owner's last incident.
  const { rows } = await connection.query<{ owners: string[]; is_subscribed: boolean }>({
    name: 'completion-to-notify',
    text: `with open_incidents as materialized (
        select owner_id from exportd.incidents incident
        join exportd.batch_exports export on export.id = batch_export_id and not export.deleted
        left join exportd.backfills backfill on backfill.id = owner_id
        where incident.batch_export_id = $1 and (owner_id = $2 or owner_id in (
            select other.owner_id from exportd.incidents other where other.batch_export_id = $1
              and other.data_interval_start = $3 and other.data_interval_end = $4))
          and case when owner_id = $1 then not export.paused else backfill.status is distinct from 'Paused' end
        order by owner_id, data_interval_start, data_interval_end for update of incident)
      select array(select distinct owner_id::text from open_incidents order by 1) as owners,
        exists (select from exportd.webhooks webhook
          where ${isSubscribed({ type: `'interval.published'`, team: '$5', batchExport: '$1' })}) as is_subscribed`,
    values: [batch_export_id, ownerOf(notification), start, end, team_id],
  });
  const [found] = rows;
  if (!found) throw new RangeError('A statement without FROM returns one row.');
  const tellsOfRecovery = await resolveIncidents(connection, notification, found.owners);
  if (!found.is_subscribed || manifest === null) return tellsOfRecovery;
  const tellsOfManifest = await storeNotification(connection, {
    ...notification,
    type: 'interval.published',
    incident: null,
    manifest,
  });
  return tellsOfRecovery || tellsOfManifest;
}

/**
 * Resolves the incidents that a completed run ends: all incidents of the schedule or backfill that owns it, and all of
 * its interval. An owner without open incidents has recovered, which is notified. A paused owner
 * recovers with its first run after the unpause.
 * @param owners the owners of these incidents, which are locked
 */
async function resolveIncidents(
  connection: Connection,
  notification: Omit<NewIntervalNotification, 'type' | 'incident'>,
  owners: readonly string[],
): Promise<boolean> {
  if (owners.length === 0) return false;
  const { batch_export_id, data_interval_start: start, data_interval_end: end } = notification;
  const { rows: ended } = await connection.query<OpenIncident & { owner_id: string; now: string }>(
    `with ended as (
       delete from exportd.incidents where batch_export_id = $1 and owner_id = any($5)
         and (owner_id = $2 or (data_interval_start = $3 and data_interval_end = $4)) returning *)
     select owner_id, ${incidentColumns}, clock_timestamp() as now from ended group by owner_id, incident_id`,
    [batch_export_id, ownerOf(notification), start, end, owners],
  );
  const { rows: remaining } = await connection.query<{ owner_id: string }>(
    'select distinct owner_id from exportd.incidents where batch_export_id = $1 and owner_id = any($2)',
    [batch_export_id, owners],
  );
  const ownersWithIncidents = new Set(remaining.map(({ owner_id }) => owner_id));
  let hasDelivery = false;
  for (const recovered of owners.filter((id) => !ownersWithIncidents.has(id))) {
    const incident = ended.find(({ owner_id }) => owner_id === recovered);
    const tells = await storeNotification(connection, {
      ...notification,
      type: 'batch_export.recovered',
      cause: `${notification.cause}/${recovered}`,
      backfill_id: recovered === batch_export_id ? null : recovered,
      incident: incident
        ? incidentOf(incident, { closed_at: new Date(incident.now).toISOString(), closed_by: 'recovery' })
        : null,
    });
    hasDelivery ||= tells;
  }
  return hasDelivery;
}

/**
 * Ends the incidents of deleted exports, and notifies of it. Afterwards nothing keeps the webhooks of such an export, except
 * deliveries that have not ended.
 * @returns the number of incidents that it has ended
 */
export const closeIncidentsOfDeleted = (pool: Pool): Promise<number> =>
  inTransaction(pool, async (connection) => {
    const { rows } = await connection.query<
      OpenIncident & { batch_export_id: string; owner_id: string; team_id: number; now: string }
    >(
      `with ended as (
         delete from exportd.incidents incident using exportd.batch_exports export
         where export.id = incident.batch_export_id and export.deleted returning incident.*, export.team_id)
       select batch_export_id, owner_id, team_id, ${incidentColumns}, clock_timestamp() as now
       from ended group by 1, 2, 3, incident_id`,
    );
    for (const { batch_export_id, owner_id, team_id, now, ...incident } of rows)
      await storeNotification(connection, {
        ...withoutRun,
        type: 'batch_export.recovered',
        cause: `${incident.incident_id} deleted`,
        team_id,
        batch_export_id,
        backfill_id: owner_id === batch_export_id ? null : owner_id,
        incident: incidentOf(incident, { closed_at: new Date(now).toISOString(), closed_by: 'deletion' }),
      });
    await connection.query(deleteWebhooksOfDeleted);
    return rows.length;
  });

/** SQL: deletes the webhooks of deleted exports that have no message to send any more. */
export const deleteWebhooksOfDeleted = `delete from exportd.webhooks webhook using exportd.batch_exports export
  where export.id = webhook.batch_export_id and export.deleted and not exists (
      select from exportd.webhook_deliveries where webhook_id = webhook.id and status = 'pending')
    and not exists (select from exportd.incidents incident where incident.batch_export_id = export.id)
    and not exists (select from exportd.notified_conditions notified where notified.batch_export_id = export.id)`;
