import { batchExportDecider } from '../domain/batch_export.ts';
import {
  activeRunStatuses,
  decideCancel,
  isActiveStatus,
  retryDelaySeconds,
  runDecider,
  type RunEvent,
} from '../domain/run.ts';
import type { Connection } from '../journal/database.ts';
import type { Journal, JournalTransaction } from '../journal/journal.ts';
import { writeLogLine } from '../journal/log_lines.ts';
import type { NotificationType } from '../notifications/notification.ts';
import { openIncident } from './notifications.ts';
import type { Policies } from './policies.ts';

/** The ways a run ends without a manifest. */
export type RunOutcome = 'Failed' | 'FailedRetryable' | 'TimedOut' | 'Terminated' | 'Cancelled';

/**
 * Ends a run that did not complete. A run that has a terminal status already keeps it, and a run whose manifest is
 * being published is ended all the same: the manifest's claim belongs to whoever completes it first.
 * @returns whether the status is of this call's making.
 */
export async function endRun(
  journal: Journal,
  policies: Policies,
  runId: string,
  ending: { readonly status: RunOutcome; readonly latest_error: string },
): Promise<boolean> {
  return journal.transaction(async (transaction) => {
    const { connection } = transaction;
    await lockExportOf(transaction, runId);
    const stream = await transaction.lock(runDecider, runId);
    const state = stream.state();
    if (state.status === 'Absent' || !isActiveStatus(state.status)) return false;
    const { retry_number, team_id, batch_export_id, data_interval_start, data_interval_end } = state.spec;
    const retry = { retry_number, retry_delay_seconds: retryDelaySeconds(retry_number, policies.retry) };
    const events: Record<RunOutcome, RunEvent> = {
      Failed: { type: 'RunFailed', data: { latest_error: ending.latest_error } },
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
    const news = notificationTypeOf(ending.status, retry.retry_delay_seconds);
    if (news)
      await openIncident(connection, {
        ...ending,
        type: news,
        cause: runId,
        team_id,
        batch_export_id,
        backfill_id: state.spec.backfill_id,
        run_id: runId,
        data_interval_start,
        data_interval_end,
      });
    return true;
  });
}

/** Endings and the schedule's steps take turns: whether a run failed decides what is opened next. */
async function lockExportOf(transaction: JournalTransaction, runId: string): Promise<void> {
  const { rows } = await transaction.connection.query<{ batch_export_id: string }>(
    'select batch_export_id from exportd.batch_export_runs where id = $1',
    [runId],
  );
  if (rows[0]) await transaction.lock(batchExportDecider, rows[0].batch_export_id);
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
 * Cancels the active runs of an export or a backfill, except those that are publishing: they complete. A run of a
 * backfill that is the schedule's run of its interval too, or that another backfill waits for, goes on for their sake.
 * @returns the ids of the runs that are Cancelled now.
 */
export async function cancelRuns(
  transaction: JournalTransaction,
  of: { readonly batch_export_id: string } | { readonly backfill_id: string },
  cause: string,
  reason: string,
): Promise<string[]> {
  const ids = await cancellableRuns(transaction.connection, of);
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

async function cancellableRuns(
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
