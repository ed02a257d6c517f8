import type { QueryEnding } from '../src/queries/statuses.ts';
import type { Logger } from '../src/telemetry/logger.ts';
import { currentActivity, withHeartbeats } from './activity_context.ts';
import { withFailures } from './failures.ts';

/** Which query; its text is read from the control database. */
interface StoredQuery {
  readonly execution_id: string;
}

/** What the activities of queries work with. */
export interface QueryActivityDependencies {
  /** Runs a stored query; see src/queries/run_stored.ts. */
  readonly runQuery: (executionId: string, stopping: AbortSignal) => Promise<QueryEnding['status'] | null>;
  /** Records the ending of a query that could not record its own. */
  readonly endQuery: (executionId: string, status: 'cancelled' | 'failed') => Promise<void>;
  readonly heartbeatTimeoutMs: number;
  readonly logger: Logger;
}

export type QueryActivities = ReturnType<typeof createQueryActivities>;
export type QueryEndActivities = ReturnType<typeof createQueryEndActivities>;

/** Runs queries, on a task queue of their own. */
export const createQueryActivities = ({ runQuery, heartbeatTimeoutMs, logger }: QueryActivityDependencies) =>
  withFailures(
    {
      runStoredQuery: async ({ execution_id }: StoredQuery): Promise<QueryEnding['status'] | null> =>
        withHeartbeats(
          currentActivity(),
          heartbeatTimeoutMs,
          () => undefined,
          (signal) => runQuery(execution_id, signal),
        ),
    },
    logger,
  );

/** The local activity that records what happened to a query from outside. */
export const createQueryEndActivities = ({ endQuery, logger }: QueryActivityDependencies) =>
  withFailures(
    {
      endStoredQuery: async (
        query: StoredQuery & { readonly status: 'cancelled' | 'failed' },
      ): Promise<void> => endQuery(query.execution_id, query.status),
    },
    logger,
  );
