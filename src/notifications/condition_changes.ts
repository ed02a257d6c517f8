import type { NotifiedCause, OpenCause } from '../domain/condition.ts';
import { type Connection, inTransaction, type Pool } from '../journal/database.ts';
import { readStandings } from '../projections/export_conditions.ts';
import { closeIncidentsOfDeleted } from './incidents.ts';
import { notClosed, type NotifiedIncident, type NotificationType, withoutRun } from './notification.ts';
import { type NewNotification, storeNotification } from './store_notification.ts';

/** The events of a cause that begins, and that ends. The run that is held has been notified by itself. */
const conditionEvents: Readonly<
  Record<NotifiedCause, { readonly begin: NotificationType | null; readonly end: NotificationType }>
> = {
  source_unavailable: { begin: 'source.unavailable', end: 'source.recovered' },
  destination_unavailable: { begin: 'destination.unavailable', end: 'destination.recovered' },
  behind: { begin: 'export.behind', end: 'export.caught_up' },
  held: { begin: null, end: 'batch_export.recovered' },
  differs: { begin: 'export.differs', end: 'export.agrees' },
  holes: { begin: 'export.holes', end: 'export.holes_filled' },
};

/** Outages, of which a webhook of the project gets one message, however many exports they concern. */
const outages: ReadonlySet<NotifiedCause> = new Set(['source_unavailable', 'destination_unavailable']);

/**
 * How long holes last before they are told, and lateness after an outage: who creates an export backfills it next, and what an
 * outage has delayed is exported by itself.
 */
const toldAfter = `interval '15 minutes'`;

/**
 * Notifies that a run is held, and remembers it, so that its end is notified however soon it follows.
 * @returns whether there is a delivery
 */
export async function notifyOfHold(
  connection: Connection,
  notification: Omit<NewNotification, 'type' | 'incident'>,
): Promise<boolean> {
  const cause: NotifiedCause = 'held';
  const { rows } = await connection.query<StoredCause>(
    `insert into exportd.notified_conditions as held (batch_export_id, team_id, cause, intervals, told)
     select id, team_id, $2, 1, true from exportd.batch_exports where id = $1 and not deleted
     on conflict (batch_export_id, cause) do update set intervals = held.intervals + 1 returning ${storedColumns}`,
    [notification.batch_export_id, cause],
  );
  const [held] = rows;
  if (!held) return false;
  return storeNotification(connection, { ...notification, type: 'run.held', incident: incidentOf([held]) });
}

/** A cause that holds of an export, as it was when it was last looked at. */
interface StoredCause {
  readonly batch_export_id: string;
  readonly team_id: number;
  readonly cause: NotifiedCause;
  readonly incident_id: string;
  readonly subject: string | null;
  /** The most intervals that it has affected. */
  readonly intervals: number;
  /** Since when; if that is not known, when it was first seen. */
  readonly since: string;
  /** False while it is not notified, because it may end by itself. */
  readonly told: boolean;
  readonly is_due: boolean;
}

const storedColumns = `batch_export_id, team_id, cause, incident_id, subject, intervals, since, told,
  seen_at < clock_timestamp() - ${toldAfter} as is_due`;

/** A cause that has begun. */
interface BegunCause extends OpenCause {
  readonly batch_export_id: string;
  readonly team_id: number;
  readonly told: boolean;
}

/**
 * Notifies which outages, late exports, holes, held and differing intervals have begun or ended since the last call, and that the
 * incidents of deleted exports are over. The conditions follow from outages and the clock, so no event of the journal tells. One
 * process calls it at a time.
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
    `select ${storedColumns} from exportd.notified_conditions`,
  );
  const storedOf = Map.groupBy(stored, ({ batch_export_id }) => batch_export_id);
  const begun: BegunCause[] = [];
  const ended: StoredCause[] = [];
  const due: StoredCause[] = [];
  for (const { id, team_id } of live) {
    const standing = standings.get(id);
    if (!standing) continue;
    const { open_causes: open, state } = standing;
    const known = storedOf.get(id) ?? [];
    const isOpen = (cause: NotifiedCause): boolean => open.some((one) => one.cause === cause);
    // A pause exports nothing of what is late.
    const over = known.filter(({ cause }) => !isOpen(cause) && (cause !== 'behind' || !state.paused));
    const isOut = open.some(({ cause }) => outages.has(cause));
    const wasOut = over.some(({ cause }) => outages.has(cause));
    const first = open.filter(({ cause }) => !known.some((one) => one.cause === cause));
    for (const one of first)
      if (one.cause !== 'behind' || !isOut)
        begun.push({
          ...one,
          batch_export_id: id,
          team_id,
          told: one.cause !== 'holes' && !(one.cause === 'behind' && wasOut),
        });
    ended.push(...over);
    due.push(...known.filter(({ cause, told, is_due }) => !told && is_due && isOpen(cause)));
    await storeIntervals(pool, known, open);
  }
  for (const causes of Map.groupBy(begun, ({ batch_export_id, team_id, cause, incident }) =>
    incident ? `${team_id} ${incident.id}` : `${batch_export_id} ${cause}`,
  ).values())
    await inTransaction(pool, (connection) => beginCauses(connection, causes));
  for (const cause of due) await inTransaction(pool, (connection) => tellLate(connection, cause));
  const liveIds = new Set(live.map(({ id }) => id));
  const isDeleted = ({ batch_export_id }: StoredCause): boolean => !liveIds.has(batch_export_id);
  ended.push(...stored.filter(isDeleted));
  for (const causes of Map.groupBy(ended, ({ team_id, incident_id }) => `${team_id} ${incident_id}`).values())
    await inTransaction(pool, (connection) =>
      endCauses(connection, causes, causes.every(isDeleted) ? 'deletion' : 'recovery'),
    );
  return begun.length + due.length + ended.length + (await closeIncidentsOfDeleted(pool));
}

/** Remembers how many intervals a known cause affects, if it has grown. */
async function storeIntervals(
  pool: Pool,
  known: readonly StoredCause[],
  open: readonly OpenCause[],
): Promise<void> {
  for (const { batch_export_id, cause, intervals } of known) {
    const now = open.find((one) => one.cause === cause)?.intervals ?? 0;
    if (now > intervals)
      await pool.query(
        'update exportd.notified_conditions set intervals = $3 where batch_export_id = $1 and cause = $2',
        [batch_export_id, cause, now],
      );
  }
}

const incidentOf = (
  [first, ...others]: readonly [StoredCause, ...StoredCause[]],
  { closed_at, closed_by }: Pick<NotifiedIncident, 'closed_at' | 'closed_by'> = notClosed,
): NotifiedIncident => ({
  id: first.incident_id,
  cause: first.cause,
  subject: first.subject,
  exports: others.length + 1,
  intervals: others.reduce((total, { intervals }) => total + intervals, first.intervals),
  opened_at: new Date(first.since).toISOString(),
  closed_at,
  closed_by,
});

const isFilled = <Item>(items: readonly Item[]): items is readonly [Item, ...Item[]] => items.length > 0;

/** Reads the exports of the project that an incident concerns now. */
async function readIncident(
  connection: Connection,
  { team_id, incident_id }: Pick<StoredCause, 'team_id' | 'incident_id'>,
): Promise<readonly StoredCause[]> {
  const { rows } = await connection.query<StoredCause>(
    `select ${storedColumns} from exportd.notified_conditions
     where team_id = $1 and incident_id = $2 order by batch_export_id`,
    [team_id, incident_id],
  );
  return rows;
}

/** Stores causes that have begun with one incident, and notifies of those that are told at once. */
async function beginCauses(connection: Connection, causes: readonly BegunCause[]): Promise<void> {
  const [one] = causes;
  const known = one?.incident
    ? await readIncident(connection, { team_id: one.team_id, incident_id: one.incident.id })
    : [];
  const added: StoredCause[] = [];
  for (const { batch_export_id, team_id, cause, since, intervals, incident, told } of causes) {
    const { rows } = await connection.query<StoredCause>(
      `insert into exportd.notified_conditions
         (batch_export_id, team_id, cause, incident_id, subject, intervals, since, told)
       values ($1, $2, $3, coalesce($4, gen_random_uuid()), $5, $6, coalesce($7, clock_timestamp()), $8)
       returning ${storedColumns}`,
      [
        batch_export_id,
        team_id,
        cause,
        incident?.id ?? null,
        incident?.subject ?? null,
        intervals,
        since,
        told,
      ],
    );
    added.push(...rows);
  }
  const all = [...known, ...added];
  if (!isFilled(all)) return;
  const incident = incidentOf(all);
  for (const [index, cause] of added.entries())
    if (cause.told)
      await tellBegin(connection, cause, {
        incident,
        latest_error: causes[index]?.incident?.summary ?? causes[index]?.summary ?? null,
        onlyOwnWebhooks: known.length + index > 0,
      });
}

/** Notifies of a cause that has lasted. */
async function tellLate(connection: Connection, cause: StoredCause): Promise<void> {
  await connection.query(
    'update exportd.notified_conditions set told = true where batch_export_id = $1 and cause = $2',
    [cause.batch_export_id, cause.cause],
  );
  await tellBegin(connection, cause, {
    incident: incidentOf([cause]),
    latest_error: null,
    onlyOwnWebhooks: false,
  });
}

async function tellBegin(
  connection: Connection,
  { batch_export_id, team_id, cause, incident_id, since }: StoredCause,
  fields: Pick<NewNotification, 'incident' | 'latest_error' | 'onlyOwnWebhooks'>,
): Promise<void> {
  const type = conditionEvents[cause].begin;
  if (type === null) return;
  await storeNotification(connection, {
    ...withoutRun,
    ...fields,
    type,
    // A bucket that fails again soon continues its incident.
    cause: `${cause} ${incident_id} since ${new Date(since).toISOString()}`,
    team_id,
    batch_export_id,
  });
}

/** Whether an outage lasts, which no export waits for any more. */
async function isStillOut(connection: Connection, incidentId: string): Promise<boolean> {
  const { rowCount } = await connection.query(
    `select from exportd.destination_circuits where incident_id = $1 and opened_at is not null
     union all select from exportd.operator_faults where incident_id = $1 and resolved_at is null`,
    [incidentId],
  );
  return rowCount !== 0;
}

/**
 * Forgets causes that have ended with one incident, and notifies of the end of those that were told.
 * @param by what has ended them, unless their outage lasts
 */
async function endCauses(
  connection: Connection,
  causes: readonly StoredCause[],
  by: 'recovery' | 'deletion',
): Promise<void> {
  const { rows } = await connection.query<StoredCause & { readonly now: string }>(
    `delete from exportd.notified_conditions
     where batch_export_id = any($1) and cause = $2 and told
     returning ${storedColumns}, clock_timestamp() as now`,
    [causes.map(({ batch_export_id }) => batch_export_id), causes[0]?.cause],
  );
  await connection.query(
    'delete from exportd.notified_conditions where batch_export_id = any($1) and cause = $2 and not told',
    [causes.map(({ batch_export_id }) => batch_export_id), causes[0]?.cause],
  );
  if (!isFilled(rows)) return;
  const [{ now }] = rows;
  const closedAt = new Date(now).toISOString();
  const remaining = await readIncident(connection, rows[0]);
  const isOut = await isStillOut(connection, rows[0].incident_id);
  for (const [index, { batch_export_id, team_id, cause, incident_id }] of rows.entries())
    await storeNotification(connection, {
      ...withoutRun,
      type: conditionEvents[cause].end,
      cause: `${cause} ${incident_id} ended ${closedAt}`,
      team_id,
      batch_export_id,
      incident: incidentOf(rows, { closed_at: closedAt, closed_by: isOut ? 'disuse' : by }),
      onlyOwnWebhooks: remaining.length + index > 0,
    });
}
