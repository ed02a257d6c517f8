import { batchExportDecider } from '../domain/batch_export.ts';
import {
  activeRunStatuses,
  decideCancel,
  isActiveStatus,
  retryDelaySeconds,
  runDecider,
  type ExistingRun,
  type RunEvent,
} from '../domain/run.ts';
import type { MissingRows } from '../domain/replacement.ts';
import type { Connection } from '../journal/database.ts';
import type { Journal, JournalTransaction } from '../journal/journal.ts';
import { writeLogLine } from '../journal/log_lines.ts';
import type { NotificationType } from '../notifications/notification.ts';
import { openIncident, storeNotification } from './notifications.ts';
import type { Policies } from './policies.ts';

/** The statuses of a run that ends without a manifest. */
export type RunOutcome = 'Failed' | 'FailedRetryable' | 'TimedOut' | 'Terminated' | 'Cancelled';

/**
 * Ends a run that did not complete. A run that already has a terminal status keeps it. A run that is publishing its
 * manifest is ended too, unless it completes first.
 * @returns whether this call set the status.
 */
export async function endRun(
  journal: Journal,
  policies: Policies,
  runId: string,
  ending: { readonly status: RunOutcome; readonly latest_error: string },
): Promise<boolean> {
  return journal.transaction(async (transaction) => {
    const { connection } = transaction;
    await lockExportOfRun(transaction, runId);
    const stream = await transaction.lock(runDecider, runId);
    const state = stream.state();
    if (state.status === 'Absent' || !isActiveStatus(state.status)) return false;
    const { retry_number, team_id, batch_export_id, data_interval_start, data_interval_end } = state.spec;
    const retry = { retry_number, retry_delay_seconds: retryDelaySeconds(retry_number, policies.retry) };
    const held = ending.status === 'Failed' ? missingRowsOf(state) : undefined;
    const events: Record<RunOutcome, RunEvent> = {
      Failed: { type: 'RunFailed', data: { latest_error: ending.latest_error, ...(held && { held }) } },
      FailedRetryable: { type: 'RunFailedRetryable', data: { latest_error: ending.latest_error, ...retry } },
      TimedOut: { type: 'RunTimedOut', data: { latest_error: ending.latest_error, ...retry } },
      Terminated: { type: 'RunTerminated', data: { latest_error: ending.latest_error } },
      Cancelled: { type: 'RunCancelled', data: { reason: ending.latest_error } },
    };
    await stream.append('ended', [events[ending.status]]);
    await writeLogLine(connection, {
      team_id,
      batch_export_id,
      run_id: runId,
      level: ending.status === 'Cancelled' ? 'WARNING' : 'ERROR',
      message: `Run of ${data_interval_start} to ${data_interval_end} ended ${ending.status}: ${ending.latest_error}`,
    });
    const notification = {
      ...ending,
      cause: runId,
      team_id,
      batch_export_id,
      backfill_id: state.spec.backfill_id,
      run_id: runId,
      data_interval_start,
      data_interval_end,
    };
    // No incident: nothing is broken, and there is nothing to recover from.
    if (held) await storeNotification(connection, { ...notification, type: 'run.held' });
    const type = held ? undefined : notificationTypeOf(ending.status, retry.retry_delay_seconds);
    if (type) await openIncident(connection, { ...notification, type });
    return true;
  });
}

/** Serializes the end of a run with the schedule's steps: whether a run failed decides which run is created next. */
async function lockExportOfRun(transaction: JournalTransaction, runId: string): Promise<void> {
  const { rows } = await transaction.connection.query<{ batch_export_id: string }>(
    'select batch_export_id from exportd.batch_export_runs where id = $1',
    [runId],
  );
  if (rows[0]) await transaction.lock(batchExportDecider, rows[0].batch_export_id);
}

/** The rows that the source lacks, if that is why the run is ended. */
function missingRowsOf({ replacement }: ExistingRun): MissingRows | undefined {
  if (replacement?.outcome !== 'rows_missing') return undefined;
  const { missing_rows, bucket_rows, source_rows } = replacement;
  return { missing_rows, bucket_rows, source_rows };
}

function notificationTypeOf(
  status: RunOutcome,
  retryDelaySeconds: number | null,
): NotificationType | undefined {
  if (status === 'Failed') return 'run.failed';
  const mayBeRetried = status === 'FailedRetryable' || status === 'TimedOut';
  return mayBeRetried && retryDelaySeconds === null ? 'run.retries_exhausted' : undefined;
}

/**
 * Cancels the active runs of an export or a backfill, except those that are publishing, which complete. A backfill's run
 * continues if the schedule adopted it or another backfill waits for it.
 * @returns the ids of the cancelled runs.
 */
export async function cancelRuns(
  transaction: JournalTransaction,
  of: { readonly batch_export_id: string } | { readonly backfill_id: string },
  cause: string,
  reason: string,
): Promise<string[]> {
  const ids = await findCancellableRuns(transaction.connection, of);
  const cancelled: string[] = [];
  for (const id of ids) {
    const stream = await transaction.lock(runDecider, id);
    const state = stream.state();
    if (state.status === 'Absent' || !isActiveStatus(state.status) || state.publish_started_at !== null)
      continue;
    await stream.append(cause, decideCancel(state, reason));
    cancelled.push(id);
  }
  return cancelled;
}

async function findCancellableRuns(
  connection: Connection,
  of: { readonly batch_export_id: string } | { readonly backfill_id: string },
): Promise<string[]> {
  const [condition, id] =
    'batch_export_id' in of
      ? ['batch_export_id = $1', of.batch_export_id]
      : [
          `backfill_id = $1 and not adopted_by_schedule and not exists (select from exportd.backfill_runs other
             where other.run_id = run.id and other.backfill_id <> $1 and other.status is null)`,
          of.backfill_id,
        ];
  const { rows } = await connection.query<{ id: string }>(
    `select id from exportd.batch_export_runs run where ${condition} and status = any($2) order by id`,
    [id, activeRunStatuses],
  );
  return rows.map((run) => run.id);
}
