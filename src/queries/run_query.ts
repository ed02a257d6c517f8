import type { Settings } from '../config/settings.ts';
import type { JsonValue } from '../domain/event.ts';
import { isReadOnly, type Pool } from '../journal/database.ts';
import type { SourceConnections } from '../source/source_connection.ts';
import type { Logger } from '../telemetry/logger.ts';
import { postgresConnection } from './query_connection.ts';
import { QueryCancelled, QueryError, QueryInterrupted, toQueryError } from './query_errors.ts';
import type { ComputedOutput, QueryExecutor, QueryForm } from './query_executor.ts';
import type { QueryProgress, QueryProject } from './query_kind.ts';
import type { QuerySlots, SlotOwner } from './query_slots.ts';
import { queryTransaction, workMemOf } from './query_source.ts';
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

/**
 * Runs queries in `slots`. Polls the control database with one statement for all of them, also those that wait, which
 * records their heartbeats and progress and finds cancelled ones. A failed poll is followed by the next one.
 */
export function createRunningQueries({
  pool,
  slots,
  pollMs,
  logger,
}: {
  readonly pool: Pool;
  readonly slots: QuerySlots;
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
    run: async (query, work) => {
      shutdown.signal.throwIfAborted();
      const { execution_id: executionId } = query;
      const stop = new AbortController();
      const entry: { stop: AbortController; progress: QueryProgress } = { stop, progress: {} };
      if (executionId !== null) running.set(executionId, entry);
      pollWhileRunning();
      let reclaim: (() => void) | undefined;
      let release: (() => void) | undefined;
      try {
        const signal = AbortSignal.any([stop.signal, shutdown.signal, query.signal]);
        release = await slots
          .acquire(query, signal, () => (reclaim = query.yieldSlot?.()))
          .finally(() => reclaim?.());
        signal.throwIfAborted();
        return await work({
          signal,
          progress: (progress) => (entry.progress = { ...entry.progress, ...progress }),
        });
      } finally {
        release?.();
        // An attempt that lost its heartbeats can end after the next one started, which has replaced its entry.
        if (executionId !== null && running.get(executionId) === entry) running.delete(executionId);
      }
    },
    interrupt: () => shutdown.abort(new QueryInterrupted()),
    interrupted: () => shutdown.signal.aborted,
  };
}

/** The dependencies of a query run. */
export interface QueryRunnerDependencies {
  readonly source: SourceConnections;
  readonly executor: QueryExecutor;
  readonly settings: Pick<
    Settings,
    'EXPORTD_QUERY_MAX_ROWS' | 'EXPORTD_QUERY_MAX_RESULT_SIZE' | 'EXPORTD_QUERY_WORK_MEM'
  >;
}

/** One run of a query. */
interface QueryRun {
  readonly form: Pick<QueryForm, 'kind' | 'query'>;
  readonly variables: Readonly<Record<string, JsonValue>>;
  readonly project: QueryProject;
  readonly now: Date;
  readonly timeoutMs: number;
}

/** A query exceeded its timeout. */
class QueryTimeout extends Error {
  override readonly name = 'QueryTimeout';
}

/**
 * Runs a query in one READ ONLY transaction within its limits on time, rows and bytes.
 * @throws QueryError, the reason of the signal, or the error of an unreachable database
 */
export async function runQuery(
  { source, executor, settings }: QueryRunnerDependencies,
  { form, variables, project, now, timeoutMs }: QueryRun,
  { signal, progress }: RunningQuery,
): Promise<ComputedOutput> {
  const limits = {
    row_limit: settings.EXPORTD_QUERY_MAX_ROWS,
    byte_limit: settings.EXPORTD_QUERY_MAX_RESULT_SIZE,
  };
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new QueryTimeout()), timeoutMs);
  try {
    const ending = AbortSignal.any([signal, late.signal]);
    return await source.read(queryTransaction(timeoutMs, project.team_id), ending, ({ connection: client }) =>
      executor.run(
        { kind: form.kind, query: form.query, variables, project, now, ...limits },
        {
          connection: postgresConnection(client, (operations) => workMemOf(settings, operations)),
          progress,
          signal: ending,
        },
      ),
    );
  } catch (error) {
    if (Error.isError(error) && error.name === 'QueryTimeout')
      throw new QueryError(
        'query_timeout',
        `The query took longer than ${timeoutMs / 1_000} s (EXPORTD_QUERY_TIMEOUT; EXPORTD_QUERY_ASYNC_TIMEOUT in the background). Narrow its date range, run it in the background, or use a batch export.`,
      );
    // Not an outage, as the same error of the control database is: a statement of ours must never write.
    if (isReadOnly(error))
      throw new Error('A query was compiled to a statement that writes.', { cause: error });
    throw toQueryError(error) ?? error;
  } finally {
    clearTimeout(timer);
  }
}
