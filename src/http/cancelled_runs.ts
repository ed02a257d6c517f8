import type { Pool } from '../journal/database.ts';
import type { Logger } from '../telemetry/logger.ts';
import { forEachConcurrently } from '../concurrency/keyed_semaphore.ts';

/** An export may have hundreds of active runs, and each is polled several times a second. */
const maxPolledRuns = 8;

/** A cancelled run, with what identifies its workflow execution. */
export interface CancelledRun {
  readonly run_id: string;
  readonly batch_export_id: string;
  readonly data_interval_start: string;
  readonly data_interval_end: string;
}

/** Observes the workflow executions of runs. */
export interface RunExecutions {
  /**
   * Waits at most `timeoutMs` until the execution of the run is closed.
   * @returns false when it is still open. Rejects when Temporal cannot be reached.
   */
  waitUntilClosed(run: CancelledRun, timeoutMs: number): Promise<boolean>;
}

/**
 * Waits at most `timeoutMs` until the executions of the runs that a command cancelled are closed. The journal records a
 * run as Cancelled immediately; the worker that exports it learns of it with its next heartbeat and may write until then.
 * @returns false when an execution may still be open.
 */
export async function waitForCancelledRuns(
  dependencies: { readonly pool: Pool; readonly executions: RunExecutions; readonly logger: Logger },
  commandId: string,
  timeoutMs: number,
): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  const runs = await runsCancelledSince(dependencies.pool, commandId);
  let areClosed = true;
  // They close at about the same time, so few of them have to be polled.
  await forEachConcurrently(runs, maxPolledRuns, async (run) => {
    if (!areClosed) return;
    const timeLeft = Math.max(0, deadline - performance.now());
    const isClosed = await dependencies.executions.waitUntilClosed(run, timeLeft).catch((error: unknown) => {
      dependencies.logger.warn(
        { err: error, run_id: run.run_id },
        'Could not read whether the execution of a cancelled run is closed.',
      );
      return false;
    });
    areClosed &&= isClosed;
  });
  return areClosed;
}

/** The runs of the command's export cancelled since the command was stored, which include those that it cancelled. */
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
