import { forEachConcurrently } from '../concurrency/keyed_semaphore.ts';
import type { Settings } from '../config/settings.ts';
import type { Pool } from '../journal/database.ts';
import type { Logger } from '../telemetry/logger.ts';

/** An export may have hundreds of active runs, and each is polled several times a second. */
const maxPolledRuns = 8;

/** A cancelled run, with what identifies its workflow execution. */
interface CancelledRun {
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
 * @returns the ids of the runs whose executions may still be open.
 */
export async function waitForCancelledRuns(
  dependencies: { readonly pool: Pool; readonly executions: RunExecutions; readonly logger: Logger },
  commandId: string,
  timeoutMs: number,
): Promise<string[]> {
  const deadline = performance.now() + timeoutMs;
  const runs = await runsCancelledSince(dependencies.pool, commandId);
  const open = new Set(runs.map(({ run_id }) => run_id));
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
    if (isClosed) open.delete(run.run_id);
    areClosed &&= isClosed;
  });
  return [...open];
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

/** How many runs a message names. */
const maxNamedRuns = 5;

/**
 * The body of a 202 response when cancelled runs may still be writing; `what` says what was done. A worker learns of the
 * cancellation with its next heartbeat, and one that sends none loses the run after the heartbeat timeout.
 */
export function stillStoppingDetail(
  what: string,
  runIds: readonly string[],
  { EXPORTD_HEARTBEAT_TIMEOUT: timeoutMs }: Pick<Settings, 'EXPORTD_HEARTBEAT_TIMEOUT'>,
): { detail: string } {
  const named = runIds.slice(0, maxNamedRuns).join(', ');
  const others = runIds.length > maxNamedRuns ? ` and ${runIds.length - maxNamedRuns} more` : '';
  const until = new Date(Date.now() + timeoutMs).toISOString();
  return {
    detail: `${what}; workers have not confirmed yet that they stopped run ${named}${others}, so data can still reach the bucket. They stop by ${until}.`,
  };
}
