import type { Registry } from 'prom-client';
import type { QueryActivityDependencies } from '../../../activities/query.ts';
import type { Settings } from '../../config/settings.ts';
import type { Pool } from '../../journal/database.ts';
import { countSlowQueries, createRunningQueries } from '../../queries/running_queries.ts';
import type { QueryExecutor } from '../../queries/query_executor.ts';
import { backgroundLimits, createQuerySlots } from '../../queries/query_slots.ts';
import { connectQueriesToSource } from '../../queries/query_source.ts';
import { runBackgroundQuery } from '../../queries/run_background.ts';
import { finishQuery } from '../../queries/statuses.ts';
import { createThreadExecutor } from '../../queries/threads/thread_executor.ts';
import type { PoolCounts } from '../../source/source_connection.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { type ActivitySlots, createActivitySlots } from './activity_slots.ts';

/**
 * Queries that may wait in a worker because their project uses all of its slots. The worker goes on to take those of other
 * projects.
 */
const maxLimitedQueries = 200;

/** Creates the dependencies of the query activities; `close` ends their connections to the source and their threads. */
export function createQueryActivityDependencies(dependencies: {
  readonly pool: Pool;
  /** By default threads. */
  readonly executor?: QueryExecutor;
  readonly logger: Logger;
  readonly settings: Settings;
  readonly metrics: Registry;
}): QueryActivityDependencies & {
  readonly slots: ActivitySlots;
  readonly pool: PoolCounts;
  close(): Promise<void>;
} {
  const {
    pool,
    logger,
    settings,
    metrics,
    executor = createThreadExecutor(dependencies.settings),
  } = dependencies;
  const source = connectQueriesToSource(settings);
  const slots = createActivitySlots(settings.EXPORTD_QUERY_SLOTS, maxLimitedQueries);
  const running = createRunningQueries({
    pool,
    slots: createQuerySlots(backgroundLimits(settings)),
    logger,
    slow: countSlowQueries(metrics, settings),
  });
  const query = { ...dependencies, executor, source, running, yieldSlot: () => slots.yieldSlot() };
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
      ),
    heartbeatTimeoutMs: settings.EXPORTD_QUERY_HEARTBEAT_TIMEOUT,
    logger,
    close: async () => {
      await Promise.all([source.close(), executor.close()]);
    },
  };
}
