import type { BackfillRange } from '../domain/backfill.ts';
import type { LiveBatchExport } from '../domain/batch_export.ts';
import type { FailureTime } from '../domain/errors.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { runDecider } from '../domain/run.ts';
import type { Connection, Pool } from '../journal/database.ts';
import { deterministicId, type JournalTransaction, writeLogLine } from '../journal/journal.ts';
import { isUncounted } from '../projections/backfills.ts';
import { activeStatuses, isFailedRun } from '../projections/runs.ts';
import { countFreeSlots, createRun, type Policies } from './create_run.ts';

/**
 * SQL condition on the table alias `run`, a run of an export: the schedule wants it, or a backfill whose status is none
 * of `ended`. A backfill wants the runs that it created and those that it waits for, with their automatic retries, which
 * belong to the backfill that created the first of them.
 */
const isWanted = (ended: readonly ('Cancelled' | 'Paused')[]): string => {
  const wants = (backfill: string) =>
    `${backfill}.status not in (${ended.map((status) => `'${status}'`).join(', ')})`;
  return `(run.backfill_id is null or run.adopted_by_schedule
    or exists (select from exportd.erasures where id = run.backfill_id)
    or exists (select from exportd.backfills owner where owner.id = run.backfill_id and ${wants('owner')})
    or exists (
      select from exportd.batch_export_runs former
      join exportd.backfill_runs waiting on waiting.run_id = former.id and ${isUncounted('waiting')}
      join exportd.backfills other on other.id = waiting.backfill_id and ${wants('other')}
      where former.batch_export_id = run.batch_export_id and former.data_interval_start = run.data_interval_start
        and former.data_interval_end = run.data_interval_end and former.backfill_id = run.backfill_id
        and former.position <= run.position))`;
};

/** SQL condition: someone still wants the run `run`. Otherwise it ends, and is not retried. */
export const isWantedRun = isWanted(['Cancelled']);

/** SQL condition: someone who is not paused wants the run `run`, so that its automatic retry may start. */
const isRetryableRun = isWanted(['Cancelled', 'Paused']);

/**
 * SQL condition: rules of the bucket may have deleted objects of a row's interval, so that it is exported again only
 * when a person requests it. The rule of `isExpired` (src/domain) for the first object that expires.
 * @param condition a further condition on the first expiration
 */
export const isExpiredInterval = (row: string, condition = ''): string => `exists (
  select from exportd.intervals interval join exportd.batch_exports owner on owner.id = interval.batch_export_id
  where interval.batch_export_id = ${row}.batch_export_id
    and interval.data_interval_start = ${row}.data_interval_start
    and interval.data_interval_end = ${row}.data_interval_end
    and ${expiration} <= clock_timestamp() ${condition})`;

/** SQL: when the first object of an interval expires. */
const expiration =
  'least(interval.expires_at, interval.completed_at + make_interval(days => owner.retention_days))';

/** An interval that needs a run, or that has one already. */
export interface NextInterval {
  readonly interval: DataInterval;
  readonly run_id: string | null;
}

/**
 * SQL: the newest runs of intervals of the export $1 at the time $3, if they failed at or after $2. Later runs do not
 * change it, so the intervals of a recovery stay the same while it runs.
 */
const failedRuns = `exportd.batch_export_runs run
  where run.batch_export_id = $1 and ${isFailedRun('run')}
    and run.finished_at >= coalesce($2, '-infinity'::timestamptz) and run.finished_at <= $3
    and not exists (
      select from exportd.batch_export_runs newer where newer.batch_export_id = $1
        and newer.data_interval_start = run.data_interval_start and newer.data_interval_end = run.data_interval_end
        and newer.position > run.position and newer.created_at <= $3)`;

const parametersOf = (batchExportId: string, { since, until }: FailureTime) => [batchExportId, since, until];

/** Finds the bounds and the number of the intervals whose newest run failed; undefined if there is none. */
export async function findFailedIntervals(
  connection: Connection,
  batchExportId: string,
  failed: FailureTime,
): Promise<BackfillRange | undefined> {
  const { rows } = await connection.query<{ intervals: number; start: string | null; end: string | null }>(
    `select count(*) as intervals, min(run.data_interval_start) as start, max(run.data_interval_end) as end
     from ${failedRuns}`,
    parametersOf(batchExportId, failed),
  );
  const { intervals = 0, start = null, end = null } = rows[0] ?? {};
  return start === null || end === null ? undefined : { intervals, start, end };
}

/** Finds the next of these intervals within a range, and its newest run if that was created since. */
export async function nextFailedInterval(
  connection: Connection,
  batchExportId: string,
  failed: FailureTime,
  range: DataInterval,
): Promise<NextInterval | undefined> {
  const { rows } = await connection.query<DataInterval & { run_id: string | null }>(
    `select failed.*, (
         select newer.id from exportd.batch_export_runs newer where newer.batch_export_id = $1
           and newer.data_interval_start = failed.start and newer.data_interval_end = failed.end
           and newer.created_at > $3
         order by newer.position desc limit 1) as run_id
     from (
       select run.data_interval_start as start, run.data_interval_end as end from ${failedRuns}
         and run.data_interval_start >= $4 and run.data_interval_start < $5
       order by run.data_interval_start limit 1) failed`,
    [...parametersOf(batchExportId, failed), range.start, range.end],
  );
  const [next] = rows;
  return next && { interval: { start: next.start, end: next.end }, run_id: next.run_id };
}

/**
 * Reads the live exports of a project that have failed runs since a time, or ever, and those whose command an earlier
 * request stored under their key.
 */
export async function readExportsToRetry(
  pool: Pool,
  teamId: number,
  { since, batchExportId }: { readonly since: string | null; readonly batchExportId: string | null },
  keyOf: (batchExportId: string) => string | undefined,
): Promise<string[]> {
  const { rows } = await pool.query<{ id: string; failed: boolean }>(
    `select export.id, exists (
         select from exportd.batch_export_runs run where run.batch_export_id = export.id and ${isFailedRun('run')}
           and run.finished_at >= coalesce($2, '-infinity'::timestamptz)) as failed
     from exportd.batch_exports export where export.team_id = $1 and not export.deleted and coalesce(export.id = $3, true)
     order by export.created_at, export.id`,
    [teamId, since, batchExportId],
  );
  const keys = new Map(rows.map(({ id }) => [id, keyOf(id)]));
  const stored = await pool.query<{ batch_export_id: string }>(
    'select batch_export_id from exportd.commands where team_id = $1 and idempotency_key = any($2)',
    [teamId, [...keys.values()].filter((key) => key !== undefined)],
  );
  const requested = new Set(stored.rows.map(({ batch_export_id }) => batch_export_id));
  return rows.filter(({ id, failed }) => failed || requested.has(id)).map(({ id }) => id);
}

interface FailedRun {
  readonly id: string;
  readonly start: string;
  readonly end: string;
  readonly batch_export_id: string;
  readonly backfill_id: string | null;
  readonly retry_number: number;
  /** Whether its destination did not respond in its time. Then its retry has the same number. */
  readonly in_outage: boolean;
  readonly allow_shrink: boolean;
  /** Whether the interval has expired since the run was created. One that expired before was requested by a person. */
  readonly has_expired: boolean;
}

/**
 * Creates the due automatic retries of an export, oldest interval first, within the free slots of the schedule or
 * backfill that owns the failed run. Intervals that have expired since are not exported again. Retries of a paused or
 * cancelled backfill wait, unless the schedule or another backfill wants the run too. The caller holds the export's lock.
 * @returns when the next retry is due; null if there is none or the due ones wait for a slot.
 */
export async function createDueRetries(
  transaction: JournalTransaction,
  policies: Policies,
  batchExportId: string,
  live: LiveBatchExport,
): Promise<Date | null> {
  const { connection, now } = transaction;
  const maxSlots = Math.max(policies.maxConcurrentRuns, policies.backfillConcurrency);
  // Cached per owner.
  const slots = new Map<string | null, number>();
  for (const run of await dueRetries(connection, batchExportId, now, maxSlots)) {
    if (run.has_expired) {
      await cancelExpiredRetry(transaction, live, run);
      continue;
    }
    const free = slots.get(run.backfill_id) ?? (await countFreeSlots(connection, policies, run));
    slots.set(run.backfill_id, free - 1);
    if (free <= 0) continue;
    await createRun(transaction, live, {
      id: deterministicId('retry', run.id),
      batch_export_id: batchExportId,
      interval: { start: run.start, end: run.end },
      backfill_id: run.backfill_id,
      retry_number: run.in_outage ? Math.max(1, run.retry_number) : run.retry_number + 1,
      allow_shrink: run.allow_shrink,
      retry_of_run_id: run.id,
    });
  }
  return nextRetryAt(connection, batchExportId, now);
}

/** Failed runs with a pending retry, without those whose backfills are all paused or cancelled; $1 is the export. */
const runsAwaitingRetry = `from exportd.batch_export_runs run
  where run.batch_export_id = $1 and run.retry_at is not null and ${isRetryableRun}`;

/**
 * Reads the failed runs whose retry is due and whose interval has no active run, oldest interval first, at most
 * `maxSlots` per owner: thousands may be due after a long outage.
 */
async function dueRetries(
  connection: Connection,
  batchExportId: string,
  now: Date,
  maxSlots: number,
): Promise<FailedRun[]> {
  const { rows } = await connection.query<FailedRun>(
    `select id, batch_export_id, data_interval_start as start, data_interval_end as end, backfill_id, retry_number,
       in_outage, allow_shrink, ${isExpiredInterval('due', `and ${expiration} > due.created_at`)} as has_expired
     from (
       select run.*, row_number() over (partition by run.backfill_id order by run.data_interval_start, run.position) as rank
       ${runsAwaitingRetry} and run.retry_at <= $2 and not exists (
         select from exportd.batch_export_runs active where active.batch_export_id = $1
           and active.data_interval_start = run.data_interval_start
           and active.data_interval_end = run.data_interval_end and active.status in (${activeStatuses}))) due
     where rank <= $3 order by data_interval_start, position`,
    [batchExportId, now, maxSlots],
  );
  return rows;
}

/** Cancels the retry of a run whose interval expired: only a person may have it exported again. */
async function cancelExpiredRetry(
  transaction: JournalTransaction,
  { team_id }: LiveBatchExport,
  { id, batch_export_id, start, end }: FailedRun,
): Promise<void> {
  const reason = 'rules of the bucket have deleted objects of the interval since the run was created';
  const run = await transaction.lock(runDecider, id);
  await run.append('expired', [{ type: 'RunRetryCancelled', data: { reason } }]);
  await writeLogLine(transaction.connection, {
    team_id,
    batch_export_id,
    run_id: id,
    level: 'WARNING',
    message: `Not retried: ${reason}. Backfill ${start} to ${end} to export it.`,
  });
}

/** When the next retry that is not due yet becomes due. */
async function nextRetryAt(connection: Connection, batchExportId: string, now: Date): Promise<Date | null> {
  const { rows } = await connection.query<{ retry_at: string }>(
    `select run.retry_at ${runsAwaitingRetry} and run.retry_at > $2 order by run.retry_at limit 1`,
    [batchExportId, now],
  );
  return rows[0] ? new Date(rows[0].retry_at) : null;
}

/**
 * Cancels the automatic retries that neither the schedule nor a backfill wants any more. The caller holds the export's
 * lock.
 */
export async function cancelUnwantedRetries(
  transaction: JournalTransaction,
  batchExportId: string,
  { cause, reason }: { readonly cause: string; readonly reason: string },
): Promise<void> {
  const { rows } = await transaction.connection.query<{ id: string }>(
    `select id from exportd.batch_export_runs run
     where batch_export_id = $1 and retry_at is not null and not ${isWantedRun} order by id`,
    [batchExportId],
  );
  for (const { id } of rows) {
    const run = await transaction.lock(runDecider, id);
    await run.append(cause, [{ type: 'RunRetryCancelled', data: { reason } }]);
  }
}
