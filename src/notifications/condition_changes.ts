import type { NotifiedCause, OpenCause } from '../domain/condition.ts';
import { type Connection, inTransaction, type Pool } from '../journal/database.ts';
import { readStandings } from '../projections/export_conditions.ts';
import { type NotificationType, withoutRun } from './notification.ts';
import { type NewNotification, storeNotification } from './store_notification.ts';

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

/**
 * Notifies that a run is held, and remembers it, so that its end is notified however soon it follows.
 * @returns whether there is a delivery
 */
export async function notifyOfHold(
  connection: Connection,
  notification: Omit<NewNotification, 'type'>,
): Promise<boolean> {
  const hasDelivery = await storeNotification(connection, { ...notification, type: 'run.held' });
  const cause: NotifiedCause = 'held';
  await connection.query(
    `insert into exportd.notified_conditions (batch_export_id, team_id, cause)
     select id, team_id, $2 from exportd.batch_exports where id = $1 and not deleted
     on conflict (batch_export_id, cause) do nothing`,
    [notification.batch_export_id, cause],
  );
  return hasDelivery;
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
