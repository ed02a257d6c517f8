import type { QueryOutcome } from '../src/queries/statuses.ts';
import type { Logger } from '../src/telemetry/logger.ts';
import { wrapActivities } from './run_step.ts';

/** Names a query. Its text is read from the control database. */
interface StoredQuery {
  readonly execution_id: string;
}

export interface QueryActivityDependencies {
  /** Runs a stored query: src/queries/run_background.ts. */
  readonly runQuery: (executionId: string, stopping: AbortSignal) => Promise<QueryOutcome['status'] | null>;
  /** Records the outcome of a query that could not record its own. */
  readonly recordOutcome: (executionId: string, status: 'cancelled' | 'failed') => Promise<void>;
  readonly heartbeatTimeoutMs: number;
  readonly logger: Logger;
}

export type QueryActivities = ReturnType<typeof createQueryActivities>;
export type QueryOutcomeActivities = ReturnType<typeof createQueryOutcomeActivities>;

/** The activities of `backgroundQuery` that run on the task queue of queries. */
export const createQueryActivities = ({ runQuery, heartbeatTimeoutMs, logger }: QueryActivityDependencies) =>
  wrapActivities(
    { logger, heartbeatTimeoutMs },
    {
      /** Runs a stored query and records its outcome; null when it had ended before. */
      runBackgroundQuery: async (
        { signal },
        { execution_id }: StoredQuery,
      ): Promise<QueryOutcome['status'] | null> => runQuery(execution_id, signal),
    },
  );

/** Its local activities. */
export const createQueryOutcomeActivities = ({ recordOutcome, logger }: QueryActivityDependencies) =>
  wrapActivities(
    { logger },
    {
      /** Records that a query was cancelled, or that no attempt could run it. */
      recordBackgroundOutcome: async (
        _,
        query: StoredQuery & { readonly status: 'cancelled' | 'failed' },
      ): Promise<void> => recordOutcome(query.execution_id, query.status),
    },
  );
