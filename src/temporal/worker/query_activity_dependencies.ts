import type { QueryActivityDependencies } from '../../../activities/query.ts';
import type { Settings } from '../../config/settings.ts';
import type { Pool } from '../../journal/database.ts';
import { connectQueriesToSource } from '../../queries/query_source.ts';
import type { PoolCounts } from '../../source/source_connection.ts';
import type { QueryExecutor } from '../../queries/query_executor.ts';
import { runBackgroundQuery } from '../../queries/run_background.ts';
import { createQuerySlots, backgroundLimits } from '../../queries/query_slots.ts';
import { createRunningQueries } from '../../queries/run_query.ts';
import { finishQuery } from '../../queries/statuses.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { createActivitySlots, type ActivitySlots } from './activity_slots.ts';

/**
 * Queries that may wait in a worker because their project uses all of its slots. The worker goes on to take those of other
 * projects.
 */
const maxLimitedQueries = 200;

/** Creates the dependencies of the query activities; `close` ends their connections to the source and their threads. */
export function createQueryActivityDependencies(dependencies: {
  readonly pool: Pool;
  readonly executor: QueryExecutor;
  readonly logger: Logger;
  readonly settings: Settings;
}): QueryActivityDependencies & {
  readonly slots: ActivitySlots;
  readonly pool: PoolCounts;
  close(): Promise<void>;
} {
  const { pool, logger, settings } = dependencies;
  const source = connectQueriesToSource(settings);
  const slots = createActivitySlots(settings.EXPORTD_QUERY_SLOTS, maxLimitedQueries);
  const running = createRunningQueries({
    pool,
    slots: createQuerySlots(backgroundLimits(settings)),
    pollMs: settings.EXPORTD_QUERY_POLL_INTERVAL,
    logger,
  });
  const query = { ...dependencies, source, running, yieldSlot: () => slots.yieldSlot() };
  return {
    slots,
    pool: source.pool,
    runQuery: (executionId, stopping) => runBackgroundQuery(query, executionId, stopping),
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
    close: async () => {
      await Promise.all([source.close(), dependencies.executor.close()]);
    },
  };
}
