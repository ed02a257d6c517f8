import type { QueryActivityDependencies } from '../../activities/query.ts';
import type { Settings } from '../config/settings.ts';
import type { Pool } from '../journal/database.ts';
import { connectQueriesToSource } from '../queries/query_source.ts';
import type { QueryKinds } from '../queries/registry.ts';
import { runStoredQuery } from '../queries/run_stored.ts';
import { createRunningQueries } from '../queries/running_queries.ts';
import { endQuery } from '../queries/statuses.ts';
import type { Logger } from '../telemetry/logger.ts';

/** What the activities of queries need in a process that runs them; `close` ends its connections to the source. */
export function createQueryWork(dependencies: {
  readonly pool: Pool;
  readonly kinds: QueryKinds;
  readonly logger: Logger;
  readonly settings: Settings;
}): QueryActivityDependencies & { close(): Promise<void> } {
  const { pool, logger, settings } = dependencies;
  const source = connectQueriesToSource(settings);
  const running = createRunningQueries({ pool, pollMs: settings.EXPORTD_QUERY_POLL_MS, logger });
  return {
    runQuery: (executionId, stopping) =>
      runStoredQuery({ ...dependencies, source, running }, executionId, stopping),
    endQuery: (executionId, status) =>
      endQuery(
        pool,
        executionId,
        status === 'cancelled'
          ? { status }
          : { status, error_code: 'error', error_message: 'A server error occurred.' },
        settings.EXPORTD_QUERY_STATUS_MS,
      ),
    heartbeatTimeoutMs: settings.EXPORTD_QUERY_HEARTBEAT_TIMEOUT_MS,
    logger,
    close: () => source.close(),
  };
}
