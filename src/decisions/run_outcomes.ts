import { batchExportDecider } from '../domain/batch_export.ts';
import { activeRunStatuses, type ExistingRun, isActiveStatus, type RunState } from '../domain/run_state.ts';
import { decideCancel, retryDelaySeconds, runDecider } from '../domain/run.ts';
import type { RunEvent } from '../domain/run_events.ts';
import type { MissingRows } from '../domain/replacement.ts';
import type { Journal, JournalTransaction, LockedStream } from '../journal/journal.ts';
import { writeLogLine } from '../journal/log_lines.ts';
import type { NotificationType } from '../notifications/notification.ts';
import { openIncident, storeNotification } from './notifications.ts';
import type { Policies } from './policies.ts';
import { isWantedRun } from './wanted_runs.ts';

/** The statuses of a run that ends without a manifest. */
export type RunOutcome = 'Failed' | 'FailedRetryable' | 'TimedOut' | 'Terminated' | 'Cancelled';

/** How a run ended, as its row shows it. */
interface Ending {
  readonly status: RunOutcome;
  readonly latest_error: string;
}

/**
 * Ends a run that did not complete. A run that already has a terminal status keeps it. A run that is publishing its
 * manifest is ended too, unless it completes first.
 * @returns whether this call set the status.
 */
export async function endRun(
  journal: Journal,
  policies: Policies,
  runId: string,
  ending: Ending,
): Promise<boolean> {
  return journal.transaction(async (transaction) => {
    await lockExportOfRun(transaction, runId);
    return endLockedRun(transaction, policies, await transaction.lock(runDecider, runId), ending);
  });
}

/**
 * Cancels a run whose execution was cancelled in Temporal, unless publishing was claimed.
 * @returns whether the execution has to stop: the run is cancelled, or has ended before
 */
export async function cancelUnlessPublishing(
  journal: Journal,
  policies: Policies,
  runId: string,
  reason: string,
): Promise<boolean> {
  return journal.transaction(async (transaction) => {
    await lockExportOfRun(transaction, runId);
    const stream = await transaction.lock(runDecider, runId);
    const state = stream.state();
    const isActive = state.status !== 'Absent' && isActiveStatus(state.status);
    if (isActive && state.publish_started_at !== null) return false;
    await endLockedRun(transaction, policies, stream, { status: 'Cancelled', latest_error: reason });
    return true;
  });
}

async function endLockedRun(
  { connection }: JournalTransaction,
  policies: Policies,
  stream: LockedStream<RunState, RunEvent>,
  ending: Ending,
): Promise<boolean> {
  const runId = stream.id;
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
 * Cancels the active runs of an export, except those that are publishing, which complete. `unwanted`: only those that
 * neither the schedule nor a backfill wants any more.
 * @returns the ids of the cancelled runs.
 */
export async function cancelRuns(
  transaction: JournalTransaction,
  batchExportId: string,
  which: 'all' | 'unwanted',
  { cause, reason }: { readonly cause: string; readonly reason: string },
): Promise<string[]> {
  const { rows } = await transaction.connection.query<{ id: string }>(
    `select id from exportd.batch_export_runs run
     where batch_export_id = $1 and status in (${active}) ${which === 'all' ? '' : `and not ${isWantedRun}`} order by id`,
    [batchExportId],
  );
  const cancelled: string[] = [];
  for (const { id } of rows) {
    const stream = await transaction.lock(runDecider, id);
    const state = stream.state();
    if (state.status === 'Absent' || !isActiveStatus(state.status) || state.publish_started_at !== null)
      continue;
    await stream.append(cause, decideCancel(state, reason));
    cancelled.push(id);
  }
  return cancelled;
}

/** Literals, so that PostgreSQL uses the index of active runs. */
const active = activeRunStatuses.map((status) => `'${status}'`).join(', ');
