import { batchExportDecider } from '../domain/batch_export.ts';
import type { MissingRows } from '../domain/replacement_check.ts';
import { decideCancel, runDecider } from '../domain/run.ts';
import { type ExistingRun, isActiveStatus, mayBePublished, type RunState } from '../domain/run_state.ts';
import type { Connection } from '../journal/database.ts';
import {
  type Journal,
  type JournalTransaction,
  type LockedStream,
  writeLogLine,
} from '../journal/journal.ts';
import type { Policies } from './policies.ts';
import { outageRetryDelaySeconds, retryDelaySeconds } from '../domain/retry_delay.ts';
import type { RunEvent } from '../domain/run_events.ts';

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
