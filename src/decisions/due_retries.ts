import type { LiveBatchExport } from '../domain/batch_export.ts';
import { runDecider } from '../domain/run.ts';
import { idFromCause, type JournalTransaction } from '../journal/journal.ts';
import { activeRunOf, openRun } from './open_run.ts';
import { takenBySchedule, type BackfillRun } from './runs_of_schedule.ts';

interface FailedRun extends BackfillRun {
  readonly backfill_id: string | null;
  readonly retry_number: number;
  readonly retry_at: string;
  /** Whether it belongs to a backfill that is paused or cancelled. */
  readonly held: boolean;
}

/**
 * Opens the automatic retries of an export that are due. A backfill that is paused or cancelled holds those of its runs
 * back, except where the schedule relies on them. The caller holds the export's lock.
 * @returns when the next one will be due; null when there is none.
 */
export async function openDueRetries(
  transaction: JournalTransaction,
  batchExportId: string,
  live: LiveBatchExport,
): Promise<Date | null> {
  const { connection, now } = transaction;
  const { rows } = await connection.query<FailedRun>(
    `select run.id, run.batch_export_id, data_interval_start as start, data_interval_end as end, backfill_id,
       retry_number, retry_at, coalesce(backfill.status in ('Paused', 'Cancelled'), false) as held
     from exportd.batch_export_runs run left join exportd.backfills backfill on backfill.id = run.backfill_id
     where run.batch_export_id = $1 and retry_at is not null order by retry_at`,
    [batchExportId],
  );
  const taken = await takenBySchedule(
    connection,
    rows.filter(({ held }) => held),
  );
  for (const run of rows) {
    if (run.held && !taken.has(run.id)) continue;
    if (new Date(run.retry_at) > now) return new Date(run.retry_at);
    const interval = { start: run.start, end: run.end };
    if ((await activeRunOf(connection, batchExportId, interval)) !== null) continue;
    await openRun(transaction, live, {
      id: idFromCause('retry', run.id),
      batch_export_id: batchExportId,
      interval,
      backfill_id: run.backfill_id,
      retry_number: run.retry_number + 1,
      retry_of_run_id: run.id,
    });
  }
  return null;
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
