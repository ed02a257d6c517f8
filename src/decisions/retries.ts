import type { LiveBatchExport } from '../domain/batch_export.ts';
import { progressForRetry, runDecider } from '../domain/run.ts';
import type { Connection } from '../journal/database.ts';
import { deterministicId, type JournalTransaction, writeLogLine } from '../journal/journal.ts';
import { activeStatuses } from '../projections/runs.ts';
import { countFreeSlots } from './active_runs.ts';
import { expiration, isExpiredInterval } from './expired_intervals.ts';
import type { Policies } from './policies.ts';
import { isRetryableRun, isWantedRun } from './wanted_runs.ts';

/**
 * Creates the automatic retry of a failed run, with the export's current definition unless the failed one kept another. It
 * resumes from the progress of the failed run if that is safe. If not, and that one was to be cancelled, no run is created.
 * The caller holds the export's lock.
 */
export async function createRetry(
  transaction: JournalTransaction,
  { definition }: Pick<LiveBatchExport, 'definition'>,
  failedRunId: string,
  { id, retry_number }: { readonly id: string; readonly retry_number: number },
): Promise<void> {
  const former = await transaction.lock(runDecider, failedRunId);
  const failed = former.state();
  if (failed.status === 'Absent') return;
  const { purpose } = failed.spec;
  const keepsDefinition = purpose.kind === 'repair' && purpose.definition === 'kept';
  const { model, config_version } = keepsDefinition ? failed.spec : definition;
  const progress = progressForRetry(failed, { run_id: failedRunId, model, config_version });
  if (failed.cancel_requested !== null && !progress) {
    // A run that starts over cannot show whether the failed one has published, and its rows are not wanted.
    await former.append('cancelled', [
      { type: 'RunRetryCancelled', data: { reason: failed.cancel_requested } },
    ]);
    return;
  }
  const stream = await transaction.lock(runDecider, id);
  const spec = { ...failed.spec, model, config_version, retry_number, continues_run_id: null };
  const inherited = progress && { run_id: failedRunId, progress };
  await stream.append('created', [
    { type: 'RunCreated', data: { ...spec, ...(inherited && { inherited }) } },
  ]);
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
    await createRetry(transaction, live, run.id, {
      id: deterministicId('retry', run.id),
      retry_number: run.in_outage ? Math.max(1, run.retry_number) : run.retry_number + 1,
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
       in_outage, ${isExpiredInterval('due', `and ${expiration} > due.created_at`)} as has_expired
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
