import { batchExportDecider, type BatchExportState } from '../domain/batch_export.ts';
import { decideNextInterval } from '../domain/due_intervals.ts';
import type { MissingRows } from '../domain/exported_files.ts';
import { decideCancel, retryDelaySeconds, runDecider } from '../domain/run.ts';
import type { RunEvent } from '../domain/run_events.ts';
import { type ExistingRun, isActiveStatus, type RunState, type RunStatus } from '../domain/run_state.ts';
import {
  type Journal,
  type JournalTransaction,
  type LockedStream,
  writeLogLine,
} from '../journal/journal.ts';
import { activeStatuses } from '../projections/runs.ts';
import { openIncident, storeNotification } from './notifications.ts';
import type { Policies } from './create_run.ts';
import { isWantedRun } from './retries.ts';

/** The statuses of a run that ends without a manifest. */
export type RunOutcome = 'Failed' | 'FailedRetryable' | 'TimedOut' | 'Terminated' | 'Cancelled';

/** How a run ends that did not complete, with an error message for the owner of the export. */
export interface FailedOutcome {
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
  ending: FailedOutcome,
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
  ending: FailedOutcome,
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
  const event = events[ending.status];
  await stream.append('ended', [event]);
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
  const hasNoRetryLeft = 'retry_delay_seconds' in event.data && event.data.retry_delay_seconds === null;
  if (ending.status === 'Failed' && !held)
    await openIncident(connection, { ...notification, type: 'run.failed' });
  if (hasNoRetryLeft) await openIncident(connection, { ...notification, type: 'run.retries_exhausted' });
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

/**
 * Cancels active runs of an export. `all`: the export is deleted, so that even those that are publishing end; the clean-up
 * finds out which of their manifests are in the bucket. `unwanted`: those that neither the schedule nor a backfill wants any
 * more, except those that are publishing, which complete.
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
     where batch_export_id = $1 and status in (${activeStatuses}) ${which === 'all' ? '' : `and not ${isWantedRun}`} order by id`,
    [batchExportId],
  );
  const evenPublishing = which === 'all';
  const cancelled: string[] = [];
  for (const { id } of rows) {
    const stream = await transaction.lock(runDecider, id);
    const state = stream.state();
    if (state.status === 'Absent' || !isActiveStatus(state.status)) continue;
    if (state.publish_started_at !== null && !evenPublishing) continue;
    await stream.append(cause, decideCancel(state, reason, { evenPublishing }));
    cancelled.push(id);
  }
  return cancelled;
}

/**
 * Whether an interval may be due that the schedule has not decided about yet, for example because it had no free slot.
 * If none is, the schedule sleeps until the next one is due, or until a command, and needs no wake-up when a run completes.
 */
export async function isIntervalDue({ pool }: Journal, batchExportId: string): Promise<boolean> {
  const { rows } = await pool.query<{ state: BatchExportState; now: string }>({
    name: 'is-interval-due',
    text: `select state, clock_timestamp() as now from exportd.stream_states
      where stream_type = 'batch_export' and stream_id = $1`,
    values: [batchExportId],
  });
  const [row] = rows;
  if (!row) return false;
  // Without jitter an interval is due earlier, so no waiting interval is missed.
  const { events, waits_for_slot } = decideNextInterval(row.state, {
    now: new Date(row.now),
    jitterMs: () => 0,
    hasFreeSlot: false,
    runIdOf: () => '',
  });
  return events.length > 0 || waits_for_slot;
}

/** How a run ended, and which workflows have to know. */
interface RunEnd {
  readonly batch_export_id: string;
  readonly status: RunStatus;
  readonly latest_error: string | null;
  /** Whether the schedule may create a run now: it waits for a free slot, or a retry is due. */
  readonly wake_schedule: boolean;
  readonly wake_backfill_ids: readonly string[];
  /** Whether notifications of the export wait for their first attempt. */
  readonly has_new_deliveries: boolean;
}

/** Reads the end of a run; undefined when there is no such run. */
export async function readRunEnd(journal: Journal, runId: string): Promise<RunEnd | undefined> {
  const { rows } = await journal.pool.query<{
    batch_export_id: string;
    status: RunStatus;
    latest_error: string | null;
    has_retries: boolean;
    has_new_deliveries: boolean;
    backfill_id: string | null;
    waiting_backfill_ids: string[];
  }>(
    `select batch_export_id, status, latest_error, backfill_id,
       exists (select from exportd.batch_export_runs failed
               where failed.batch_export_id = run.batch_export_id and failed.retry_at is not null) as has_retries,
       exists (select from exportd.webhook_deliveries delivery where delivery.batch_export_id = run.batch_export_id
               and delivery.status = 'pending' and delivery.attempts = 0
               and delivery.created_at > clock_timestamp() - interval '1 minute') as has_new_deliveries,
       array(select waiting.backfill_id::text from exportd.backfill_runs waiting
             where waiting.run_id = run.id and waiting.status is null) as waiting_backfill_ids
     from exportd.batch_export_runs run where id = $1`,
    [runId],
  );
  const [run] = rows;
  if (!run) return undefined;
  const { batch_export_id, status, latest_error, has_new_deliveries, backfill_id } = run;
  // Usually every due run has started already, and a wake-up costs half as much as a run.
  const mayCreateRun =
    backfill_id === null && (status !== 'Completed' || (await isIntervalDue(journal, batch_export_id)));
  // A backfill does not wait for an automatic retry of its run, but the retry took one of its slots.
  const own = backfill_id === null ? [] : [backfill_id];
  return {
    batch_export_id,
    status,
    latest_error,
    wake_schedule: mayCreateRun || run.has_retries,
    wake_backfill_ids: [...new Set([...own, ...run.waiting_backfill_ids])],
    has_new_deliveries,
  };
}
