import type { BackfillEvent, BackfillState } from '../domain/backfill.ts';
import {
  type AutoPause,
  autoPauseAfter,
  batchExportDecider,
  type BatchExportEvent,
  type BatchExportState,
  decideNextInterval,
  type TerminalRun,
} from '../domain/batch_export.ts';
import type { MissingRows } from '../domain/exported_files.ts';
import {
  decideCancel,
  outageRetryDelaySeconds,
  retryDelaySeconds,
  runDecider,
  type RunEvent,
} from '../domain/run.ts';
import {
  backfillOf,
  type ExistingRun,
  isActiveStatus,
  mayBePublished,
  type RunState,
  type RunStatus,
} from '../domain/run_state.ts';
import type { Connection } from '../journal/database.ts';
import {
  type Journal,
  type JournalTransaction,
  type LockedStream,
  writeLogLine,
} from '../journal/journal.ts';
import { activeStatuses } from '../projections/runs.ts';
import { isWantedRun, type Policies } from './create_run.ts';
import { notifyOfHold, openIncident } from './notifications.ts';

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
 * Cancels a run whose execution was cancelled in Temporal. If publishing was claimed, the cancellation is requested.
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
    if (isActive && mayBePublished(state)) {
      await stream.append('cancel requested', decideCancel(state, reason));
      return false;
    }
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
  const isRetried = ending.status === 'FailedRetryable' || ending.status === 'TimedOut';
  const retry =
    isRetried && (await wasInOutage(connection, state))
      ? {
          retry_number,
          retry_delay_seconds: outageRetryDelaySeconds(retry_number, policies.retry),
          in_outage: true as const,
        }
      : { retry_number, retry_delay_seconds: retryDelaySeconds(retry_number, policies.retry) };
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
    backfill_id: backfillOf(state.spec),
    run_id: runId,
    data_interval_start,
    data_interval_end,
  };
  // No incident: nothing is broken, and no run recovers from it.
  if (held) await notifyOfHold(connection, notification);
  const hasNoRetryLeft = 'retry_delay_seconds' in event.data && event.data.retry_delay_seconds === null;
  if (ending.status === 'Failed' && !held)
    await openIncident(connection, { ...notification, type: 'run.failed' });
  if (hasNoRetryLeft) await openIncident(connection, { ...notification, type: 'run.retries_exhausted' });
  return true;
}

/** Whether the circuit of a run's destination is open, or was until it closed in the time of the run. */
async function wasInOutage(connection: Connection, { spec, created_at }: ExistingRun): Promise<boolean> {
  const { rows } = await connection.query(
    `select from exportd.destination_configs config
     join exportd.destination_circuits circuit on circuit.destination = config.circuit
     where config.batch_export_id = $1 and config.version = $2
       and (circuit.opened_at is not null or circuit.closed_at > $3)`,
    [spec.batch_export_id, spec.config_version, created_at],
  );
  return rows.length > 0;
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
    if (mayBePublished(state) && !evenPublishing) continue;
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

interface EndedRun extends TerminalRun {
  readonly latest_error: string | null;
  readonly data_interval_start: string;
  readonly data_interval_end: string;
}

/** Consecutive failures that cause a pause, and the latest of them. */
interface FailureStreak {
  readonly pause: AutoPause;
  /** The cause under which the pause is appended. */
  readonly cause: string;
  readonly latest: EndedRun;
}

/**
 * Pauses an export whose last `limit` scheduled runs all Failed. The caller holds the export's lock. Failures are
 * recorded under the same lock, so no run is created after the failure that reaches the limit.
 * @returns whether it paused the export.
 */
export async function pauseFailingExport(
  { connection }: JournalTransaction,
  limit: number,
  batchExport: LockedStream<BatchExportState, BatchExportEvent>,
): Promise<boolean> {
  const state = batchExport.state();
  if (state.status !== 'live' || state.paused) return false;
  const owner = { team_id: state.team_id, batch_export_id: batchExport.id, backfill_id: null };
  const streak = await findFailureStreak(connection, limit, owner);
  if (!streak) return false;
  await batchExport.append(streak.cause, [
    { type: 'BatchExportPaused', data: { last_paused_at: null, ...streak.pause } },
  ]);
  await reportPause(connection, owner, streak, {
    type: 'batch_export.paused',
    paused: `the batch export: its last ${streak.pause.run_ids.length} scheduled runs`,
    remedy: 'unpause the batch export with `{"backfill": true}` to fill the missed intervals',
  });
  return true;
}

/**
 * Pauses a backfill whose last `limit` runs all Failed, if it has intervals left. The caller holds the locks of the
 * export and of the backfill.
 * @returns whether it paused the backfill.
 */
export async function pauseFailingBackfill(
  { connection }: JournalTransaction,
  limit: number,
  backfill: LockedStream<BackfillState, BackfillEvent>,
): Promise<boolean> {
  const state = backfill.state();
  if (state.status !== 'Running' || state.remaining === null) return false;
  const { batch_export_id, team_id, start_at, end_at } = state.spec;
  const owner = { team_id, batch_export_id, backfill_id: backfill.id };
  const streak = await findFailureStreak(connection, limit, owner);
  if (!streak) return false;
  await backfill.append(streak.cause, [{ type: 'BackfillPaused', data: streak.pause }]);
  await reportPause(connection, owner, streak, {
    type: 'backfill.paused',
    paused: `backfill ${backfill.id} of ${start_at} to ${end_at}: its last ${streak.pause.run_ids.length} runs`,
    remedy: 'unpause the backfill to continue with its next interval',
  });
  return true;
}

/** Reports a pause in the export's log, and as an incident of the latest failed run. */
async function reportPause(
  connection: Connection,
  owner: { readonly team_id: number; readonly batch_export_id: string; readonly backfill_id: string | null },
  { cause, latest }: FailureStreak,
  {
    type,
    paused,
    remedy,
  }: { type: 'batch_export.paused' | 'backfill.paused'; paused: string; remedy: string },
): Promise<void> {
  const { team_id, batch_export_id } = owner;
  const { run_id, latest_error, data_interval_start, data_interval_end } = latest;
  await writeLogLine(connection, {
    team_id,
    batch_export_id,
    run_id: null,
    level: 'ERROR',
    message:
      `Paused ${paused} Failed. Latest error: ${latest_error ?? 'unknown'} ` +
      `Fix the cause, ${remedy}, then retry the failed runs.`,
  });
  const interval = { data_interval_start, data_interval_end };
  await openIncident(connection, {
    ...owner,
    type,
    cause,
    run_id,
    status: 'Paused',
    latest_error,
    ...interval,
  });
}

/**
 * Finds the consecutive failures since the last unpause, if there are enough to pause the schedule or backfill. Held runs
 * do not count: nothing is broken, and later intervals are not affected.
 */
async function findFailureStreak(
  connection: Connection,
  limit: number,
  of: { readonly batch_export_id: string; readonly backfill_id: string | null },
): Promise<FailureStreak | undefined> {
  if (limit === 0) return undefined;
  const { batch_export_id, backfill_id } = of;
  const { rows } = await connection.query<EndedRun & { finished_at: string }>(
    `select id as run_id, status, latest_error, data_interval_start, data_interval_end, finished_at
     from exportd.batch_export_runs
     where batch_export_id = $1 and ${backfill_id === null ? 'backfill_id is null' : 'backfill_id = $3'}
       and status in ('Completed', 'Failed') and not held
     order by finished_at desc, position desc limit $2`,
    [batch_export_id, limit, ...(backfill_id === null ? [] : [backfill_id])],
  );
  const pause = autoPauseAfter(rows, limit);
  const [latest] = rows;
  const oldest = rows.at(-1);
  if (!pause || !latest || !oldest) return undefined;
  const unpaused = await connection.query(
    `select from (
       select recorded_at from exportd.journal_events
       where stream_type = $1 and stream_id = $2 and event_type = $3 order by stream_version desc limit 1) latest
     where date_trunc('milliseconds', recorded_at) > $4`,
    [
      ...(backfill_id === null
        ? ['batch_export', batch_export_id, 'BatchExportUnpaused']
        : ['backfill', backfill_id, 'BackfillUnpaused']),
      oldest.finished_at,
    ],
  );
  if (unpaused.rows.length > 0) return undefined;
  return { pause, cause: `failures:${pause.run_ids.join(',')}`, latest };
}
