import type { LiveBatchExport } from '../domain/batch_export.ts';
import { runDecider } from '../domain/run.ts';
import type { Connection } from '../journal/database.ts';
import { idFromCause, type JournalTransaction } from '../journal/journal.ts';
import { activeRunOf, openRun } from './open_run.ts';
import type { Policies } from './policies.ts';
import { freeSlots } from './run_slots.ts';
import { takenBySchedule, type BackfillRun } from './runs_of_schedule.ts';

interface FailedRun extends BackfillRun {
  readonly backfill_id: string | null;
  readonly retry_number: number;
  readonly retry_at: string;
  /** Whether it belongs to a backfill that is paused or cancelled. */
  readonly held: boolean;
}

/**
 * Opens the automatic retries of an export that are due, oldest interval first, as far as the schedule or the backfill
 * whose runs they retry has slots. A backfill that is paused or cancelled holds those of its runs back, except where the
 * schedule relies on them. The caller holds the export's lock.
 * @returns when the next one will be due; null when there is none, or those that are due wait for a run to end.
 */
export async function openDueRetries(
  transaction: JournalTransaction,
  policies: Policies,
  batchExportId: string,
  live: LiveBatchExport,
): Promise<Date | null> {
  const { connection, now } = transaction;
  const retries = await waitingRetries(connection, batchExportId);
  // Asked once for each owner: after a long outage thousands may wait.
  const slots = new Map<string | null, number>();
  for (const run of retries) {
    if (new Date(run.retry_at) > now) continue;
    const free = slots.get(run.backfill_id) ?? (await freeSlots(connection, policies, run));
    slots.set(run.backfill_id, free);
    const interval = { start: run.start, end: run.end };
    if (free <= 0 || (await activeRunOf(connection, batchExportId, interval)) !== null) continue;
    slots.set(run.backfill_id, free - 1);
    await openRun(transaction, live, {
      id: idFromCause('retry', run.id),
      batch_export_id: batchExportId,
      interval,
      backfill_id: run.backfill_id,
      retry_number: run.retry_number + 1,
      retry_of_run_id: run.id,
    });
  }
  const ahead = retries.map(({ retry_at }) => new Date(retry_at)).filter((at) => at > now);
  return ahead.length > 0 ? new Date(Math.min(...ahead.map((at) => at.getTime()))) : null;
}

/** Failed runs that a retry is to follow, oldest interval first, without those that a backfill holds back. */
async function waitingRetries(connection: Connection, batchExportId: string): Promise<FailedRun[]> {
  const { rows } = await connection.query<FailedRun>(
    `select run.id, run.batch_export_id, data_interval_start as start, data_interval_end as end, backfill_id,
       retry_number, retry_at, coalesce(backfill.status in ('Paused', 'Cancelled'), false) as held
     from exportd.batch_export_runs run left join exportd.backfills backfill on backfill.id = run.backfill_id
     where run.batch_export_id = $1 and retry_at is not null order by data_interval_start, run.position`,
    [batchExportId],
  );
  const taken = await takenBySchedule(
    connection,
    rows.filter(({ held }) => held),
  );
  return rows.filter((run) => !run.held || taken.has(run.id));
}

/**
 * Gives the automatic retries of a cancelled backfill's runs up, except where the schedule relies on them. The caller
 * holds the export's lock.
 */
export async function forgoRetries(
  transaction: JournalTransaction,
  backfillId: string,
  cause: string,
): Promise<void> {
  const { rows } = await transaction.connection.query<BackfillRun>(
    `select id, batch_export_id, data_interval_start as start, data_interval_end as end
     from exportd.batch_export_runs where backfill_id = $1 and retry_at is not null order by id`,
    [backfillId],
  );
  const taken = await takenBySchedule(transaction.connection, rows);
  for (const { id } of rows.filter((run) => !taken.has(run.id))) {
    const run = await transaction.lock(runDecider, id);
    await run.append(cause, [{ type: 'RunRetryForgone', data: { reason: 'Its backfill was cancelled.' } }]);
  }
}
