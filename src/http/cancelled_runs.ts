import type { Pool } from '../journal/database.ts';
import type { Logger } from '../telemetry/logger.ts';

/** A run that a command ended, in the terms by which its execution is found. */
export interface CancelledRun {
  readonly run_id: string;
  readonly batch_export_id: string;
  readonly data_interval_start: string;
  readonly data_interval_end: string;
}

/** Knows which runs are still at work. */
export interface RunExecutions {
  /**
   * Waits until the execution of the run has ended, for `timeoutMs` at most; false when it has not. Rejects when
   * Temporal cannot be reached.
   */
  waitUntilClosed(run: CancelledRun, timeoutMs: number): Promise<boolean>;
}

/**
 * Waits until the runs that a command cancelled have let go of the bucket and the source, for `timeoutMs` at most: in
 * the journal a run is Cancelled at once, but the worker that exports it hears of it with its next heartbeat.
 * @returns false when one of them may still be at work.
 */
export async function waitForCancelledRuns(
  deps: { readonly pool: Pool; readonly executions: RunExecutions; readonly logger: Logger },
  commandId: string,
  timeoutMs: number,
): Promise<boolean> {
  const runs = await runsCancelledSince(deps.pool, commandId);
  const closed = runs.map((run) =>
    deps.executions.waitUntilClosed(run, timeoutMs).catch((error: unknown) => {
      deps.logger.warn(
        { err: error, run_id: run.run_id },
        'it is not known whether a cancelled run has ended',
      );
      return false;
    }),
  );
  return (await Promise.all(closed)).every(Boolean);
}

/** Every run of the command's export that was cancelled since the command was stored: those it cancelled are among them. */
async function runsCancelledSince(pool: Pool, commandId: string): Promise<CancelledRun[]> {
  const { rows } = await pool.query<CancelledRun>(
    `select run.id as run_id, run.batch_export_id, run.data_interval_start, run.data_interval_end
     from exportd.commands command
     join exportd.batch_export_runs run on run.batch_export_id = command.batch_export_id
     where command.id = $1 and run.status = 'Cancelled' and run.finished_at >= command.created_at`,
    [commandId],
  );
  return rows;
}
