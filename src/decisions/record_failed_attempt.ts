import { isFailureDue } from '../domain/failed_attempts.ts';
import { isActiveStatus } from '../domain/run_state.ts';
import { runDecider } from '../domain/run.ts';
import type { Journal } from '../journal/journal.ts';
import { writeLogLine } from '../journal/log_lines.ts';

/** A step of a run that failed again, and is retried. */
export interface FailedAttempt {
  /** The type of the error and a message for users, as `classifyError` returns them. */
  readonly type: string;
  readonly message: string;
  /** What is retried, for example "the export". */
  readonly step: string;
  /** When the retries end; null if never. */
  readonly retriedUntil: Date | null;
}

/**
 * Records a failure that the run is retried after, in its `latest_error` and in the log of the export. Repetitions are
 * recorded every few minutes, and when the run has made progress since. Does nothing once the run has ended.
 */
export async function recordFailedAttempt(
  journal: Journal,
  runId: string,
  { type, message, step, retriedUntil }: FailedAttempt,
): Promise<void> {
  await journal.transaction(async (transaction) => {
    const { connection, now } = transaction;
    const stream = await transaction.lock(runDecider, runId);
    const run = stream.state();
    if (run.status === 'Absent' || !isActiveStatus(run.status)) return;
    const { rows } = await connection.query<{ isShown: boolean }>(
      'select latest_error is not null as "isShown" from exportd.batch_export_runs where id = $1',
      [runId],
    );
    const isShown = rows[0]?.isShown ?? false;
    if (!isFailureDue(run.failed_attempts, type, { isShown, now })) return;
    const retried_until = retriedUntil?.toISOString() ?? null;
    const until = retried_until === null ? '' : ` until ${retried_until}`;
    const latest_error = `${type}: ${message} Retrying ${step}${until}.`;
    const recorded = run.failed_attempts[type]?.recorded ?? 0;
    await stream.append(`failed:${type}/${recorded + 1}`, [
      { type: 'RunAttemptFailed', data: { error_type: type, latest_error, retried_until } },
    ]);
    const { team_id, batch_export_id, data_interval_start: start, data_interval_end: end } = run.spec;
    await writeLogLine(connection, {
      team_id,
      batch_export_id,
      run_id: runId,
      level: 'WARNING',
      message: `Run of ${start} to ${end} is delayed: ${latest_error}`,
    });
  });
}
