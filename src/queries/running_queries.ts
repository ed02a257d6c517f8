import type { Pool } from '../journal/database.ts';
import type { Logger } from '../telemetry/logger.ts';
import { QueryCancelled, QueryInterrupted } from './query_errors.ts';
import type { QueryProgress } from './query_kind.ts';
import { recordHeartbeats } from './statuses.ts';

/** What a query hears from outside while it runs, and says. */
export interface RunningQuery {
  /** Aborted with QueryCancelled when somebody cancelled it, with QueryInterrupted when its process shuts down. */
  readonly signal: AbortSignal;
  readonly progress: (progress: QueryProgress) => void;
}

/** The queries that a process runs now and that can be cancelled from any other. */
export interface RunningQueries {
  /** @param executionId null for a query that nobody can ask about or cancel. */
  run<Result>(executionId: string | null, work: (query: RunningQuery) => Promise<Result>): Promise<Result>;
  /** Ends them all, and those that come after. */
  interrupt(): void;
  readonly interrupted: () => boolean;
}

/**
 * Looks with one statement for all of them, at every poll, whether they are still wanted; a look that fails is made up
 * for by the next one.
 */
export function createRunningQueries({
  pool,
  pollMs,
  logger,
}: {
  readonly pool: Pool;
  readonly pollMs: number;
  readonly logger: Logger;
}): RunningQueries {
  const running = new Map<string, { readonly stop: AbortController; progress: QueryProgress }>();
  const shutdown = new AbortController();
  let polling = false;

  const poll = async (): Promise<void> => {
    const heartbeats = [...running].map(([execution_id, { progress }]) => ({ execution_id, progress }));
    for (const id of await recordHeartbeats(pool, heartbeats))
      running.get(id)?.stop.abort(new QueryCancelled());
  };
  const pollWhileRunning = (): void => {
    if (polling || running.size === 0) return;
    polling = true;
    setTimeout(() => {
      void poll()
        .catch((error: unknown) => logger.warn({ err: error }, 'Running queries could not be looked after.'))
        .finally(() => {
          polling = false;
          pollWhileRunning();
        });
    }, pollMs);
  };

  return {
    run: async (executionId, work) => {
      shutdown.signal.throwIfAborted();
      const stop = new AbortController();
      const entry: { stop: AbortController; progress: QueryProgress } = { stop, progress: {} };
      if (executionId !== null) running.set(executionId, entry);
      pollWhileRunning();
      try {
        return await work({
          signal: AbortSignal.any([stop.signal, shutdown.signal]),
          progress: (progress) => (entry.progress = { ...entry.progress, ...progress }),
        });
      } finally {
        // An attempt whose heartbeats were lost may end behind the beginning of the next one, which has its place.
        if (executionId !== null && running.get(executionId) === entry) running.delete(executionId);
      }
    },
    interrupt: () => shutdown.abort(new QueryInterrupted()),
    interrupted: () => shutdown.signal.aborted,
  };
}
