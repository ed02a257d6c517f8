import { setTimeout as wait } from 'node:timers/promises';
import { SourceBusy } from '../source/source_connection.ts';
import { toQueryResponse, type QueryResponse } from './query_response.ts';
import { jobOf, type PreparedQuery, type QueryRequest } from './prepared_query.ts';
import type { QueryService } from './query_service.ts';
import {
  disconnectedCode,
  QueryCancelled,
  QueryIdInUse,
  QueryInterrupted,
  QueryError,
  QueryNotStarted,
  slotsBusyCode,
} from './query_errors.ts';
import { outcomeOfError } from './query_outcome.ts';
import { loadOutput, storeResult, type QueryResultOutput } from './results.ts';
import { runQuery } from './run_query.ts';
import type { RunningQuery } from './running_queries.ts';
import {
  cancelledCode,
  cancelledMessage,
  claimQuery,
  finishQuery,
  hasEnded,
  type QueryStatus,
  readStatus,
  registerQuery,
} from './statuses.ts';

/**
 * Runs a query while the client waits, in the server process: it needs neither Temporal nor a worker, and ends with
 * that process or when the client disconnects. A query with a client id has a status and can be cancelled; a second
 * request with the same id waits for the result of the first.
 * @throws QueryError, QueryIdInUse, QuerySlotsBusy, QueryInterrupted, ClientDisconnected
 */
export async function runForeground(
  service: QueryService,
  request: ForegroundRequest,
  prepared: PreparedQuery,
): Promise<QueryResponse> {
  const { client_query_id: id } = request;
  if (id === null)
    return service.running.run({ ...request, execution_id: null }, async (query) =>
      responseOf(await calculate(service, prepared, query)),
    );
  const { registered, status } = await registerQuery(service.pool, {
    ...jobOf(prepared),
    id,
    query_async: false,
  });
  if (registered) return runRegistered(service, { ...request, execution_id: status.execution_id }, prepared);
  if (status.cache_key !== prepared.cache_key) throw new QueryIdInUse();
  const ended = await waitForOtherRequest(service, status, request.signal);
  if (unstartedCodes.has(ended.error_code)) return runForeground(service, request, prepared);
  return responseOfOther(service, ended);
}

type ForegroundRequest = Pick<QueryRequest, 'team_id' | 'key_id' | 'signal' | 'client_query_id'>;

/** Ends of a query that say nothing about another request for it. */
const unstartedCodes: ReadonlySet<string | null> = new Set([disconnectedCode, slotsBusyCode]);

async function calculate(
  service: QueryService,
  prepared: PreparedQuery,
  query: RunningQuery,
): Promise<QueryResultOutput> {
  const { project, cache_key } = prepared;
  const timeoutMs = service.settings.EXPORTD_QUERY_TIMEOUT;
  const output = await runQuery(service, { ...prepared, timeoutMs }, query).catch((error: unknown) => {
    throw error instanceof SourceBusy ? new QueryNotStarted() : error;
  });
  return storeResult(service.pool, { ...output, team_id: project.team_id, cache_key });
}

const responseOf = (result: QueryResultOutput): QueryResponse =>
  toQueryResponse(result, { is_cached: false, query_status: null });

async function runRegistered(
  service: QueryService,
  request: ForegroundRequest & { readonly execution_id: string },
  prepared: PreparedQuery,
): Promise<QueryResponse> {
  const { execution_id: executionId } = request;
  const ttlMs = service.settings.EXPORTD_QUERY_STATUS_TTL;
  try {
    return await service.running.run(request, async (query) => {
      if (!(await claimQuery(service.pool, executionId))) throw new QueryCancelled();
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

/** Waits for the end of a query that another request started with the same id. */
async function waitForOtherRequest(
  service: QueryService,
  status: QueryStatus,
  signal: AbortSignal,
): Promise<QueryStatus> {
  if (hasEnded(status)) return status;
  if (service.running.interrupted()) throw new QueryInterrupted();
  await wait(service.settings.EXPORTD_QUERY_POLL_INTERVAL);
  signal.throwIfAborted();
  const next = await readStatus(service.pool, status.team_id, status.id);
  if (next?.execution_id !== status.execution_id) throw new QueryError(cancelledCode, cancelledMessage);
  return waitForOtherRequest(service, next, signal);
}

async function responseOfOther(service: QueryService, status: QueryStatus): Promise<QueryResponse> {
  const found =
    status.result_id === null ? undefined : await loadOutput(service.pool, status.team_id, status.result_id);
  if (found) return responseOf(found);
  if (status.error_code === 'query_lost' || status.error_code === 'query_interrupted')
    throw new QueryInterrupted();
  if (status.error_code === 'error')
    throw new Error('The query of the other request failed with an internal error.');
  throw new QueryError(status.error_code ?? 'query_failed', status.error_message ?? 'The query failed.');
}
