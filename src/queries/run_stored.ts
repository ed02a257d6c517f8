import type { Settings } from '../config/settings.ts';
import type { Pool } from '../journal/database.ts';
import { mayPass } from '../journal/unavailable.ts';
import type { Logger } from '../telemetry/logger.ts';
import { readQueryProject } from './project.ts';
import { endingOf } from './query_ending.ts';
import { QueryInterrupted } from './query_errors.ts';
import type { QueryKinds } from './registry.ts';
import { storeResult } from './results.ts';
import { runQuery, type QueryRunnerDependencies } from './run_query.ts';
import type { RunningQueries } from './running_queries.ts';
import { endQuery, pickUpQuery, type QueryEnding, type QueryOrder } from './statuses.ts';

/** What queries in the background are run with. */
export interface StoredQueryDependencies extends QueryRunnerDependencies {
  readonly pool: Pool;
  readonly kinds: QueryKinds;
  readonly running: RunningQueries;
  readonly logger: Logger;
  readonly settings: QueryRunnerDependencies['settings'] &
    Pick<Settings, 'EXPORTD_QUERY_ASYNC_TIMEOUT_MS' | 'EXPORTD_QUERY_STATUS_MS'>;
}

/**
 * Runs a query that is stored, and stores its answer. May be repeated: one that has ended is left as it is.
 * @param stopping aborted when whoever runs it must let go; the query is then left for another attempt
 * @returns how it ended, or null when there was nothing to do.
 * @throws what another attempt may cure
 */
export async function runStoredQuery(
  dependencies: StoredQueryDependencies,
  executionId: string,
  stopping: AbortSignal,
): Promise<QueryEnding['status'] | null> {
  const { pool, running, logger, settings } = dependencies;
  const order = await pickUpQuery(pool, executionId);
  if (!order) return null;
  const end = async (ending: QueryEnding) => {
    await endQuery(pool, executionId, ending, settings.EXPORTD_QUERY_STATUS_MS);
    return ending.status;
  };
  try {
    const result_id = await running.run(executionId, (query) =>
      calculate(dependencies, order, {
        ...query,
        signal: AbortSignal.any([query.signal, stopping]),
      }),
    );
    return await end({ status: 'completed', result_id });
  } catch (error) {
    const ending = endingOf(error);
    // Whoever cancels it also stops the workflow that runs it, so that both may be heard at once.
    if (ending.status === 'cancelled') return end(ending);
    if (stopping.aborted || error instanceof QueryInterrupted || mayPass(error)) throw error;
    if (ending.error_code === 'error')
      logger.error({ err: error, execution_id: executionId }, 'A query in the background failed.');
    return end(ending);
  }
}

async function calculate(
  dependencies: StoredQueryDependencies,
  { team_id, kind, query, variables, cache_key }: QueryOrder,
  running: Parameters<typeof runQuery>[2],
): Promise<string> {
  const { pool, kinds, settings } = dependencies;
  const { project, now } = await readQueryProject(pool, team_id);
  const parsed = kinds.parse({ ...(query as Record<string, unknown>), kind });
  const timeoutMs = settings.EXPORTD_QUERY_ASYNC_TIMEOUT_MS;
  const { json } = await runQuery(dependencies, { parsed, variables, project, now, timeoutMs }, running);
  return (await storeResult(pool, { team_id, cache_key, json })).id;
}
