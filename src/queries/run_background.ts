import type { Settings } from '../config/settings.ts';
import { isTransient } from '../journal/database.ts';
import type { Logger } from '../telemetry/logger.ts';
import { readQueryProject } from './postgres_warehouse.ts';
import { storeResult } from './results.ts';
import {
  outcomeOfError,
  claimQuery,
  finishQuery,
  readTeamOfUnfinished,
  type QueryJob,
  type QueryOutcome,
} from './statuses.ts';
import { QueryInterrupted } from './query_errors.ts';
import type { QueryExecution, RunningQueries } from './running_queries.ts';
import { type QueryRunnerDependencies, runQuery } from './run_query.ts';

/** The dependencies of background queries. */
interface BackgroundQueryDependencies extends QueryRunnerDependencies {
  readonly running: RunningQueries;
  /** Lets the worker take another query while one waits for its project. */
  readonly yieldSlot: NonNullable<QueryExecution['yieldSlot']>;
  readonly logger: Logger;
  readonly settings: QueryRunnerDependencies['settings'] & Pick<Settings, 'EXPORTD_QUERY_ASYNC_TIMEOUT'>;
}

/**
 * Runs a stored query and stores its output. Can be repeated: a query that has ended is left unchanged.
 * @param stopping aborted when the worker must stop; the query is then left for another attempt
 * @returns its outcome, or null if there was nothing to do.
 * @throws errors that another attempt may avoid
 */
export async function runBackgroundQuery(
  dependencies: BackgroundQueryDependencies,
  executionId: string,
  stopping: AbortSignal,
): Promise<QueryOutcome['status'] | null> {
  const { pool, running, yieldSlot, logger } = dependencies;
  const team_id = await readTeamOfUnfinished(pool, executionId);
  if (team_id === undefined) return null;
  const end = async (outcome: QueryOutcome) => {
    await finishQuery(pool, executionId, outcome);
    return outcome.status;
  };
  try {
    const result_id = await running.run(
      { execution_id: executionId, team_id, key_id: null, signal: stopping, yieldSlot },
      async (query) => {
        const job = await claimQuery(pool, executionId);
        return job && calculate(dependencies, job, query);
      },
    );
    return result_id === undefined ? null : await end({ status: 'completed', result_id });
  } catch (error) {
    const outcome = outcomeOfError(error);
    // A cancellation also cancels the workflow, so both signals can arrive at the same time.
    if (outcome.status === 'cancelled') return end(outcome);
    if (stopping.aborted || error instanceof QueryInterrupted || isTransient(error)) throw error;
    if (outcome.error_code === 'error')
      logger.error({ err: error, execution_id: executionId }, 'A background query failed.');
    return end(outcome);
  }
}

async function calculate(
  dependencies: BackgroundQueryDependencies,
  { team_id, kind, query, variables, cache_key }: QueryJob,
  running: Parameters<typeof runQuery>[2],
): Promise<string> {
  const { pool, settings } = dependencies;
  const { project, now } = await readQueryProject(pool, team_id);
  const timeoutMs = settings.EXPORTD_QUERY_ASYNC_TIMEOUT;
  const form = { kind, query: query as Readonly<Record<string, unknown>> };
  const output = await runQuery(dependencies, { form, variables, project, now, timeoutMs }, running);
  return (await storeResult(pool, { ...output, team_id, cache_key })).id;
}
