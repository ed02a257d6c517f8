import { setTimeout as wait } from 'node:timers/promises';
import { toQueryResponse } from './query_response.ts';
import { jobOf, type PreparedQuery } from './prepared_query.ts';
import type { QueryService } from './query_service.ts';
import { QueryIdInUse, QueryInterrupted, QueryError, QueryNotStarted } from './query_errors.ts';
import { outcomeOfError } from './query_outcome.ts';
import { loadOutput, storeResult, type QueryResult, type StoredOutput } from './results.ts';
import { runQuery } from './run_query.ts';
import type { RunningQuery } from './running_queries.ts';
import {
  registerQuery,
  cancelledCode,
  cancelledMessage,
  finishQuery,
  hasEnded,
  readStatus,
} from './statuses.ts';
import type { QueryStatus } from './statuses.ts';

type QueryResponse = Record<string, unknown>;

/**
 * Runs a query while the client waits, in the server process: it needs neither Temporal nor a worker, and ends with
 * that process. A query with a client id has a status and can be cancelled; a second request with the same id waits for
 * the result of the first.
 * @throws QueryError, QueryIdInUse, QueryInterrupted
 */
export async function runForeground(
  service: QueryService,
  id: string | null,
  prepared: PreparedQuery,
): Promise<QueryResponse> {
  if (id === null)
    return service.running.run(null, async (query) => responseOf(await calculate(service, prepared, query)));
  const { registered, status } = await registerQuery(service.pool, {
    ...jobOf(prepared),
    id,
    query_async: false,
  });
  if (registered) return runRegistered(service, status.execution_id, prepared);
  if (status.cache_key !== prepared.cache_key) throw new QueryIdInUse();
  return waitForOtherRequest(service, status);
}

/** The pool's message when it is exhausted and when the server does not respond. */
const noConnection = /^timeout exceeded when trying to connect$/;

type CalculatedOutput = QueryResult & { readonly output: StoredOutput };

async function calculate(
  service: QueryService,
  prepared: PreparedQuery,
  query: RunningQuery,
): Promise<CalculatedOutput> {
  const { project, cache_key } = prepared;
  const timeoutMs = service.settings.EXPORTD_QUERY_TIMEOUT;
  const { output, json } = await runQuery(service, { ...prepared, timeoutMs }, query).catch(
    (error: unknown) => {
      throw Error.isError(error) && noConnection.test(error.message) ? new QueryNotStarted() : error;
    },
  );
  return { ...(await storeResult(service.pool, { team_id: project.team_id, cache_key, json })), output };
}

const responseOf = (result: CalculatedOutput): QueryResponse =>
  toQueryResponse(result.output, result, { is_cached: false, query_status: null });

async function runRegistered(
  service: QueryService,
  executionId: string,
  prepared: PreparedQuery,
): Promise<QueryResponse> {
  const ttlMs = service.settings.EXPORTD_QUERY_STATUS_TTL;
  try {
    return await service.running.run(executionId, async (query) => {
      const result = await calculate(service, prepared, query);
      await finishQuery(service.pool, executionId, { status: 'completed', result_id: result.id }, ttlMs);
      return responseOf(result);
    });
  } catch (error) {
    const outcome = outcomeOfError(error);
    await finishQuery(service.pool, executionId, outcome, ttlMs);
    if (outcome.status === 'cancelled') throw new QueryError(cancelledCode, cancelledMessage);
    throw error;
  }
}

/** Waits for the result of a query that another request started with the same id. */
async function waitForOtherRequest(service: QueryService, status: QueryStatus): Promise<QueryResponse> {
  if (!hasEnded(status)) {
    if (service.running.interrupted()) throw new QueryInterrupted();
    await wait(service.settings.EXPORTD_QUERY_POLL_INTERVAL);
    const next = await readStatus(service.pool, status.team_id, status.id);
    if (next?.execution_id !== status.execution_id) throw new QueryError(cancelledCode, cancelledMessage);
    return waitForOtherRequest(service, next);
  }
  const found =
    status.result_id === null ? undefined : await loadOutput(service.pool, status.team_id, status.result_id);
  if (found) return responseOf(found);
  if (status.error_code === 'query_lost' || status.error_code === 'query_interrupted')
    throw new QueryInterrupted();
  if (status.error_code === 'error')
    throw new Error('The query of the other request failed with an internal error.');
  throw new QueryError(status.error_code ?? 'query_failed', status.error_message ?? 'The query failed.');
}
