import type { Settings } from '../config/settings.ts';
import type { Pool } from '../journal/database.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { QueryRunnerDependencies } from './run_query.ts';
import type { RunningQueries } from './running_queries.ts';
import type { QueryStatus } from './statuses.ts';

/** Starts and cancels background queries in Temporal. Both methods reject if Temporal is unreachable. */
export interface BackgroundQueries {
  start(query: Pick<QueryStatus, 'team_id' | 'id' | 'execution_id'>): Promise<void>;
  /** Does nothing if the query no longer runs. */
  cancel(query: Pick<QueryStatus, 'team_id' | 'id'>): Promise<void>;
}

/** The dependencies of the query endpoint. */
export interface QueryService extends QueryRunnerDependencies {
  readonly pool: Pool;
  readonly running: RunningQueries;
  readonly background: BackgroundQueries;
  readonly logger: Logger;
  readonly settings: QueryRunnerDependencies['settings'] &
    Pick<
      Settings,
      | 'EXPORTD_TASK_QUEUE_PREFIX'
      | 'EXPORTD_QUERY_CACHE_TTL'
      | 'EXPORTD_QUERY_CANCEL_TIMEOUT'
      | 'EXPORTD_QUERY_POLL_INTERVAL'
      | 'EXPORTD_QUERY_PROJECT_QUEUE_SIZE'
      | 'EXPORTD_QUERY_STATUS_TTL'
      | 'EXPORTD_QUERY_TIMEOUT'
    >;
}
