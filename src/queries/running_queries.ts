import type { Pool } from '../journal/database.ts';
import type { Logger } from '../telemetry/logger.ts';
import { QueryCancelled, QueryInterrupted } from './query_errors.ts';
import type { QueryProgress } from './query_kind.ts';
import { recordHeartbeats } from './statuses.ts';

/** What a running query is given. */
export interface RunningQuery {
  /** Aborted with QueryCancelled when the query is cancelled, with QueryInterrupted when its process shuts down. */
  readonly signal: AbortSignal;
  readonly progress: (progress: QueryProgress) => void;
}

/** The queries that this process runs; any process can cancel them. */
export interface RunningQueries {
  /** Runs a query. @param executionId null for a query without a status */
  run<Result>(executionId: string | null, work: (query: RunningQuery) => Promise<Result>): Promise<Result>;
  /** Aborts all running queries and rejects new ones. */
  interrupt(): void;
  readonly interrupted: () => boolean;
}

/**
 * Polls the control database with one statement for all running queries, which records their heartbeats and progress
 * and finds cancelled ones. A failed poll is followed by the next one.
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
        .catch((error: unknown) =>
          logger.warn({ err: error }, 'Could not record the heartbeats of running queries.'),
        )
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
        // An attempt that lost its heartbeats can end after the next one started, which has replaced its entry.
        if (executionId !== null && running.get(executionId) === entry) running.delete(executionId);
      }
    },
    interrupt: () => shutdown.abort(new QueryInterrupted()),
    interrupted: () => shutdown.signal.aborted,
  };
}
