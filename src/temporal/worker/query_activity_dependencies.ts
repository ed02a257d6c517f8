import type { QueryActivityDependencies } from '../../../activities/query.ts';
import type { Settings } from '../../config/settings.ts';
import type { Pool } from '../../journal/database.ts';
import { connectQueriesToSource } from '../../queries/query_source.ts';
import type { QueryKinds } from '../../queries/registry.ts';
import { runBackgroundQuery } from '../../queries/run_background.ts';
import { createRunningQueries } from '../../queries/running_queries.ts';
import { finishQuery } from '../../queries/statuses.ts';
import type { Logger } from '../../telemetry/logger.ts';

/** Creates the dependencies of the query activities; `close` ends their connections to the source. */
export function createQueryActivityDependencies(dependencies: {
  readonly pool: Pool;
  readonly kinds: QueryKinds;
  readonly logger: Logger;
  readonly settings: Settings;
}): QueryActivityDependencies & { close(): Promise<void> } {
  const { pool, logger, settings } = dependencies;
  const source = connectQueriesToSource(settings);
  const running = createRunningQueries({ pool, pollMs: settings.EXPORTD_QUERY_POLL_INTERVAL, logger });
  return {
    runQuery: (executionId, stopping) =>
      runBackgroundQuery({ ...dependencies, source, running }, executionId, stopping),
    recordOutcome: (executionId, status) =>
      finishQuery(
        pool,
        executionId,
        status === 'cancelled'
          ? { status }
          : { status, error_code: 'error', error_message: 'A server error occurred.' },
        settings.EXPORTD_QUERY_STATUS_TTL,
      ),
    heartbeatTimeoutMs: settings.EXPORTD_QUERY_HEARTBEAT_TIMEOUT,
    logger,
    close: () => source.close(),
  };
}
