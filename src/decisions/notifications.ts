import type { NotifiedCause, OpenCause } from '../domain/condition.ts';
import { type Connection, inTransaction, type Pool } from '../journal/database.ts';
import { deterministicId } from '../journal/journal.ts';
import { readStandings } from '../projections/export_conditions.ts';
import { maxPendingDeliveries } from '../notifications/deliveries.ts';
import {
  noManifest,
  type NotificationData,
  type NotificationType,
  type PublishedManifest,
  withoutRun,
} from '../notifications/notification.ts';

/** A notification to store. */
interface NewNotification extends Omit<
  NotificationData,
  'project_id' | 'batch_export_id' | 'batch_export_name' | 'condition' | keyof PublishedManifest
> {
  readonly type: NotificationType;
  /** Identifies what it reports: each cause is notified once. */
  readonly cause: string;
  readonly team_id: number;
  readonly batch_export_id: string;
  /** Only of `interval.published`. */
  readonly manifest?: PublishedManifest;
  /** Leaves out the webhooks of the project, which have got the same message about another export. */
  readonly onlyOwnWebhooks?: boolean;
}

/** Errors in messages are truncated to this number of characters. */
const maxErrorLength = 4_000;

/** A notification about the interval of a run, or of the latest run that led to a pause. */
type NewIntervalNotification = NewNotification & {
  readonly data_interval_start: string;
  readonly data_interval_end: string;
};

/**
 * Opens an incident of the schedule or backfill and stores its notification, with a delivery to each subscribed webhook,
 * in the transaction of the event that it reports. The incident stays open until its owner recovers. Deleted exports
 * have neither. The caller has locked every stream that it needs.
 */
export async function openIncident(
  connection: Connection,
  notification: NewIntervalNotification,
): Promise<void> {
  // Updates an existing row too, to lock it: a concurrent recovery waits and is notified after this failure.
  await connection.query(
    `insert into exportd.incidents (batch_export_id, owner_id, data_interval_start, data_interval_end)
     select id, $2, $3, $4 from exportd.batch_exports where id = $1 and not deleted
     on conflict (batch_export_id, owner_id, data_interval_start, data_interval_end)
       do update set opened_at = excluded.opened_at`,
    [
      notification.batch_export_id,
      ownerOf(notification),
      notification.data_interval_start,
      notification.data_interval_end,
    ],
  );
  await storeNotification(connection, notification);
}

/** Owner of an incident: the backfill, or the export for its schedule. */
const ownerOf = ({
  batch_export_id,
  backfill_id,
}: Pick<NewNotification, 'batch_export_id' | 'backfill_id'>): string => backfill_id ?? batch_export_id;

/** A run that completed its interval. */
type Completion = Omit<NewIntervalNotification, 'type' | 'manifest'> & {
  readonly manifest: PublishedManifest;
};

/**
 * Stores what a completed run notifies: recoveries, and `interval.published`. A run without open incidents, in a project
 * without a webhook for published intervals, costs one statement.
 */
export async function notifyOfCompletion(
  connection: Connection,
  { manifest, ...notification }: Completion,
): Promise<void> {
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
  await resolveIncidents(connection, notification, found.owners);
  if (found.is_subscribed)
    await storeNotification(connection, { ...notification, type: 'interval.published', manifest });
}

/**
 * Resolves the incidents that a completed run ends: all incidents of the schedule or backfill that owns it, and all of
 * its interval. An owner without open incidents has recovered, which is notified. A paused owner
 * recovers with its first run after the unpause.
 * @param owners the owners of these incidents, which are locked
 */
async function resolveIncidents(
  connection: Connection,
  notification: Omit<NewIntervalNotification, 'type'>,
  owners: readonly string[],
): Promise<void> {
  if (owners.length === 0) return;
  const { batch_export_id, data_interval_start: start, data_interval_end: end } = notification;
  await connection.query(
    `delete from exportd.incidents where batch_export_id = $1 and owner_id = any($5)
     and (owner_id = $2 or (data_interval_start = $3 and data_interval_end = $4))`,
    [batch_export_id, ownerOf(notification), start, end, owners],
  );
  const { rows: remaining } = await connection.query<{ owner_id: string }>(
    'select distinct owner_id from exportd.incidents where batch_export_id = $1 and owner_id = any($2)',
    [batch_export_id, owners],
  );
  const ownersWithIncidents = new Set(remaining.map(({ owner_id }) => owner_id));
  for (const recovered of owners.filter((id) => !ownersWithIncidents.has(id)))
    await storeNotification(connection, {
      ...notification,
      type: 'batch_export.recovered',
      cause: `${notification.cause}/${recovered}`,
      backfill_id: recovered === batch_export_id ? null : recovered,
    });
}

/** The condition that a webhook receives events of a type, by SQL expressions. */
const isSubscribed = ({
  type,
  team,
  batchExport,
}: Readonly<Record<'type' | 'team' | 'batchExport', string>>) =>
  `webhook.team_id = ${team} and webhook.enabled and ${type} = any(webhook.events)
      and (webhook.batch_export_id is null or webhook.batch_export_id = ${batchExport})`;

/**
 * Stores a notification with a delivery to each subscribed webhook, in the transaction of the event that it reports. Once
 * per cause; deleted exports have none. `interval.published` is stored only while a webhook subscribes to it. A webhook that
 * has too many pending deliveries gets one that is dropped, so that its log shows what it missed.
 */
export async function storeNotification(
  connection: Connection,
  notification: NewNotification,
): Promise<void> {
  const {
    type,
    cause,
    team_id,
    batch_export_id,
    manifest,
    onlyOwnWebhooks = false,
    ...fields
  } = notification;
  const data: Omit<NotificationData, 'batch_export_name' | 'condition'> = {
    project_id: team_id,
    batch_export_id,
    ...fields,
    latest_error: fields.latest_error?.slice(0, maxErrorLength) ?? null,
    ...(manifest ?? noManifest),
  };
  await connection.query({
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
    from exportd.batch_exports where id = $4 and not deleted
      and ($2 <> 'interval.published' or exists (select from subscribed))
    on conflict (id) do nothing returning id)
  insert into exportd.webhook_deliveries (notification_id, webhook_id, batch_export_id, status, detail, ended_at)
  select added.id, subscribed.id, $4,
    case when is_full then 'dropped' else 'pending' end,
    case when is_full then 'The webhook already had ${maxPendingDeliveries.toLocaleString('en')} pending deliveries.' end,
    case when is_full then clock_timestamp() end
  from added cross join subscribed`;

/** The cause of a notification that an export has at most once a day, in UTC. */
export const dayOf = (now: Date): string => now.toISOString().slice(0, 'YYYY-MM-DD'.length);

/** Drops the pending deliveries and the incidents of a deleted export, and deletes its dedicated webhooks. */
export async function dropNotifications(connection: Connection, batchExportId: string): Promise<void> {
  for (const statement of [
    'delete from exportd.webhooks where batch_export_id = $1',
    `update exportd.webhook_deliveries
     set status = 'dropped', detail = 'The batch export was deleted.', ended_at = clock_timestamp()
     where batch_export_id = $1 and status = 'pending'`,
    'delete from exportd.incidents where batch_export_id = $1',
    'delete from exportd.notified_conditions where batch_export_id = $1',
  ])
    await connection.query(statement, [batchExportId]);
}

/** The events of a cause that begins, and that ends. The run that is held has been notified by itself. */
const conditionEvents: Readonly<
  Record<NotifiedCause, { readonly begin: NotificationType | null; readonly end: NotificationType }>
> = {
  source_unavailable: { begin: 'source.unavailable', end: 'source.recovered' },
  destination_unavailable: { begin: 'destination.unavailable', end: 'destination.recovered' },
  behind: { begin: 'export.behind', end: 'export.caught_up' },
  held: { begin: null, end: 'batch_export.recovered' },
  holes: { begin: 'export.holes', end: 'export.holes_filled' },
};

/** Notifies that a run is held, and remembers it, so that its end is notified however soon it follows. */
export async function notifyOfHold(
  connection: Connection,
  notification: Omit<NewNotification, 'type'>,
): Promise<void> {
  await storeNotification(connection, { ...notification, type: 'run.held' });
  const cause: NotifiedCause = 'held';
  await connection.query(
    `insert into exportd.notified_conditions (batch_export_id, team_id, cause)
     select id, team_id, $2 from exportd.batch_exports where id = $1 and not deleted
     on conflict (batch_export_id, cause) do nothing`,
    [notification.batch_export_id, cause],
  );
}

/** Outages, of which a webhook of the project gets one message, however many exports they concern. */
const outages: ReadonlySet<NotifiedCause> = new Set(['source_unavailable', 'destination_unavailable']);

interface StoredCause {
  readonly batch_export_id: string;
  readonly team_id: number;
  readonly cause: NotifiedCause;
  readonly since: string | null;
}

/**
 * Notifies which outages, late exports and held intervals have begun or ended since the last call. The conditions follow
 * from outages and the clock, so no event of the journal tells. One process calls it at a time.
 * @returns the number of changes
 */
export async function notifyConditionChanges(pool: Pool): Promise<number> {
  const { rows: live } = await pool.query<{ id: string; team_id: number }>(
    'select id, team_id from exportd.batch_exports where not deleted order by created_at, id',
  );
  const standings = await readStandings(
    pool,
    live.map(({ id }) => id),
    () => undefined,
  );
  const { rows: stored } = await pool.query<StoredCause>(
    'select batch_export_id, team_id, cause, since from exportd.notified_conditions',
  );
  const storedOf = Map.groupBy(stored, ({ batch_export_id }) => batch_export_id);
  let changes = 0;
  for (const { id, team_id } of live) {
    const standing = standings.get(id);
    if (!standing) continue;
    const known = storedOf.get(id) ?? [];
    const begun = standing.open_causes.filter(({ cause }) => !known.some((one) => one.cause === cause));
    const ended = known.filter(({ cause }) => !standing.open_causes.some((one) => one.cause === cause));
    for (const one of begun)
      await inTransaction(pool, (connection) => beginCause(connection, { id, team_id }, one));
    // A pause exports nothing of what is late.
    const over = ended.filter(({ cause }) => cause !== 'behind' || !standing.state.paused);
    for (const one of over) await inTransaction(pool, (connection) => endCause(connection, one));
    changes += begun.length + over.length;
  }
  return changes;
}

/** SQL: whether an outage is stored for an export of the project; $1 to $3 are project, cause and begin. */
const isStoredOutage = `select exists (select from exportd.notified_conditions
  where team_id = $1 and cause = $2 and since is not distinct from $3::timestamptz) as found`;

async function hasOutage(
  connection: Connection,
  { team_id, cause, since }: Pick<StoredCause, 'team_id' | 'cause' | 'since'>,
): Promise<boolean> {
  if (!outages.has(cause)) return false;
  const { rows } = await connection.query<{ found: boolean }>(isStoredOutage, [team_id, cause, since]);
  return rows[0]?.found ?? false;
}

async function beginCause(
  connection: Connection,
  { id, team_id }: { readonly id: string; readonly team_id: number },
  { cause, since, summary }: OpenCause,
): Promise<void> {
  const onlyOwnWebhooks = await hasOutage(connection, { team_id, cause, since });
  await connection.query(
    `insert into exportd.notified_conditions (batch_export_id, team_id, cause, since) values ($1, $2, $3, $4)`,
    [id, team_id, cause, since],
  );
  const type = conditionEvents[cause].begin;
  if (type !== null)
    await storeNotification(connection, {
      ...withoutRun,
      type,
      // A cause without a known begin may begin more than once.
      cause: `${cause} since ${since ?? (await clockOf(connection))}`,
      team_id,
      batch_export_id: id,
      latest_error: summary,
      onlyOwnWebhooks,
    });
}

async function endCause(
  connection: Connection,
  { batch_export_id, team_id, cause, since }: StoredCause,
): Promise<void> {
  await connection.query(
    'delete from exportd.notified_conditions where batch_export_id = $1 and cause = $2',
    [batch_export_id, cause],
  );
  await storeNotification(connection, {
    ...withoutRun,
    type: conditionEvents[cause].end,
    cause: `${cause} since ${since === null ? null : new Date(since).toISOString()} ended ${await clockOf(connection)}`,
    team_id,
    batch_export_id,
    onlyOwnWebhooks: await hasOutage(connection, { team_id, cause, since }),
  });
}

/** The time of the database: a cause without a known begin may end more than once. */
async function clockOf(connection: Connection): Promise<string> {
  const { rows } = await connection.query<{ now: string }>('select clock_timestamp()::text as now');
  return rows[0]?.now ?? '';
}
