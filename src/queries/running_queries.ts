import { Counter, type Registry } from 'prom-client';
import type { Settings } from '../config/settings.ts';
import type { Pool } from '../journal/database.ts';
import type { Logger } from '../telemetry/logger.ts';
import { QueryCancelled, QueryInterrupted } from './query_errors.ts';
import type { QueryProgress } from './query_kind.ts';
import type { QuerySlots, SlotOwner } from './query_slots.ts';
import { recordHeartbeats } from './statuses.ts';

/** What a running query is given. */
export interface RunningQuery {
  /**
   * Aborted with QueryCancelled when the query is cancelled, with QueryInterrupted when its process shuts down, and with
   * its caller's signal.
   */
  readonly signal: AbortSignal;
  readonly progress: (progress: QueryProgress) => void;
}

/** A query that waits for a slot and then runs. */
export interface QueryExecution extends SlotOwner {
  /** Null for a query without a status. */
  readonly execution_id: string | null;
  /** Aborted when its caller no longer needs it. */
  readonly signal: AbortSignal;
  /**
   * Yields what would start other queries, while this one waits although slots are free, because none of them is for it.
   * @returns a function that reclaims it
   */
  readonly yieldSlot?: () => (() => void) | undefined;
}

/** What is done with slow queries, besides a line of the log. Neither has the text of a query, which can hold anything. */
interface SlowQueries {
  readonly thresholdMs: number;
  /** Counts a slow query of a project. */
  readonly count: (teamId: number) => void;
}

/** Counts slow queries in the metrics of a process. */
export function countSlowQueries(
  metrics: Registry,
  { EXPORTD_QUERY_SLOW_TIME: thresholdMs }: Pick<Settings, 'EXPORTD_QUERY_SLOW_TIME'>,
): SlowQueries {
  const counter = new Counter({
    name: 'exportd_slow_queries_total',
    help: 'Queries that took longer than EXPORTD_QUERY_SLOW_TIME.',
    labelNames: ['project'],
    registers: [metrics],
  });
  return { thresholdMs, count: (teamId) => counter.inc({ project: String(teamId) }) };
}

/** The queries that this process runs; any process can cancel them. */
export interface RunningQueries {
  /**
   * Runs a query as soon as it has a slot.
   * @throws QuerySlotsBusy, the reason of the query's signal, the errors of `work`
   */
  run<Result>(query: QueryExecution, work: (query: RunningQuery) => Promise<Result>): Promise<Result>;
  /** Aborts all running and waiting queries and rejects new ones. */
  interrupt(): void;
  readonly interrupted: () => boolean;
}

/** How often a process checks whether its queries were cancelled, and records their heartbeat, in milliseconds. */
const pollMs = 250;

/**
 * Runs queries in `slots`. Polls the control database with one statement for all of them, also those that wait, which
 * records their heartbeats and progress and finds cancelled ones. A failed poll is followed by the next one.
 */
export function createRunningQueries({
  pool,
  slots,
  logger,
  slow,
}: {
  readonly pool: Pool;
  readonly slots: QuerySlots;
  readonly logger: Logger;
  readonly slow?: SlowQueries;
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

  const reportIfSlow = (query: QueryExecution, ms: number, progress: QueryProgress): void => {
    if (slow === undefined || ms < slow.thresholdMs) return;
    slow.count(query.team_id);
    logger.warn(
      { project: query.team_id, query_id: query.execution_id, seconds: ms / 1_000, ...progress },
      'A query was slow.',
    );
  };

  return {
    run: async (query, work) => {
      shutdown.signal.throwIfAborted();
      const { execution_id: executionId } = query;
      const stop = new AbortController();
      const entry: { stop: AbortController; progress: QueryProgress } = { stop, progress: {} };
      if (executionId !== null) running.set(executionId, entry);
      pollWhileRunning();
      let reclaim: (() => void) | undefined;
      let release: (() => void) | undefined;
      let startedAt: number | undefined;
      try {
        const signal = AbortSignal.any([stop.signal, shutdown.signal, query.signal]);
        release = await slots
          .acquire(query, signal, () => (reclaim = query.yieldSlot?.()))
          .finally(() => reclaim?.());
        signal.throwIfAborted();
        startedAt = performance.now();
        return await work({
          signal,
          progress: (progress) => (entry.progress = { ...entry.progress, ...progress }),
        });
      } finally {
        release?.();
        if (startedAt !== undefined) reportIfSlow(query, performance.now() - startedAt, entry.progress);
        // An attempt that lost its heartbeats can end after the next one started, which has replaced its entry.
        if (executionId !== null && running.get(executionId) === entry) running.delete(executionId);
      }
    },
    interrupt: () => shutdown.abort(new QueryInterrupted()),
    interrupted: () => shutdown.signal.aborted,
  };
}
