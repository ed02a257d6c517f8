import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { Settings } from '../config/settings.ts';
import { SourceBusy } from '../source/source_connection.ts';
import type { Logger } from '../telemetry/logger.ts';
import { jobOf, type PreparedQuery, prepareQuery, type QueryRequest } from './prepared_query.ts';
import {
  BackgroundQueueFull,
  BackgroundUnavailable,
  disconnectedCode,
  QueryCancelled,
  QueryError,
  QueryIdInUse,
  QueryInterrupted,
  QueryNotStarted,
  slotsBusyCode,
} from './query_errors.ts';
import { isAccepted, refreshModes } from './freshness.ts';
import { findCached, loadOutput, type QueryResult, type QueryResultOutput, storeResult } from './results.ts';
import {
  outcomeOfError,
  cancelledCode,
  cancelledMessage,
  claimQuery,
  countUnfinished,
  deleteQuery,
  findRunningQuery,
  finishQuery,
  hasEnded,
  type QueryStatus,
  readStatus,
  recordCacheHit,
  registerQuery,
  requestCancel,
} from './statuses.ts';
import { type QueryResponse, type StatusResponse, toQueryResponse, toStatusResponse } from './responses.ts';
import { type QueryRunnerDependencies, runQuery } from './run_query.ts';
import type { RunningQueries, RunningQuery } from './running_queries.ts';

/** Starts and cancels background queries in Temporal. Both methods reject if Temporal is unreachable. */
export interface BackgroundQueries {
  start(query: Pick<QueryStatus, 'team_id' | 'id' | 'execution_id'>): Promise<void>;
  /** Does nothing if the query no longer runs. */
  cancel(query: Pick<QueryStatus, 'team_id' | 'id'>): Promise<void>;
}

/** The dependencies of the query endpoint. */
export interface QueryService extends QueryRunnerDependencies {
  readonly running: RunningQueries;
  readonly background: BackgroundQueries;
  readonly logger: Logger;
  readonly settings: QueryRunnerDependencies['settings'] &
    Pick<
      Settings,
      | 'EXPORTD_TASK_QUEUE_PREFIX'
      | 'EXPORTD_QUERY_CACHE_TTL'
      | 'EXPORTD_QUERY_CANCEL_TIMEOUT'
      | 'EXPORTD_QUERY_PROJECT_QUEUE_SIZE'
      | 'EXPORTD_QUERY_TIMEOUT'
    >;
}

/**
 * Handles a request: returns a cached result, runs the query, or starts it and returns its status.
 * @throws QueryError, QuerySchemaError, QueryIdInUse, QuerySlotsBusy, BackgroundQueueFull, BackgroundUnavailable,
 * QueryInterrupted, ClientDisconnected
 */
export async function handleQuery(service: QueryService, request: QueryRequest): Promise<QueryResponse> {
  const { pool, settings } = service;
  const prepared = await prepareQuery(service, request);
  const { cache_key, form, project, now } = prepared;
  const { accepts, otherwise } = refreshModes[request.refresh];
  const key = { team_id: project.team_id, cache_key, maxAgeMs: settings.EXPORTD_QUERY_CACHE_TTL };
  const cached = accepts === 'nothing' ? undefined : await findCached(pool, key);
  if (cached && isAccepted(cached.computed_at, form.freshness, now, accepts)) {
    const response = await respondFromCache(service, request, prepared, cached);
    if (response) return response;
  }
  if (otherwise === 'miss')
    return {
      fields: { cache_key, query_status: await runningStatus(service, request, prepared) },
      json: null,
    };
  if (otherwise === 'run') return runForeground(service, request, prepared);
  const query_status = toStatusResponse(await startBackground(service, request, prepared), settings);
  if (request.refresh === 'force_async') return { fields: { query_status }, json: null };
  return (
    (cached && (await loadCached(service, prepared, cached, query_status))) ?? {
      fields: { cache_key, query_status },
      json: null,
    }
  );
}

/** `Retry-After` of a background query that exceeds the limit; when one of the others ends is unknown. */
const retryAfterSeconds = 30;

/**
 * Starts a background query, or joins one that already runs: under the client's id, or the same query if the client
 * gave no id and does not force a calculation.
 * @throws QueryIdInUse, BackgroundQueueFull, BackgroundUnavailable
 */
async function startBackground(
  { pool, background, logger, settings }: QueryService,
  { client_query_id, refresh, user_id }: QueryRequest,
  prepared: PreparedQuery,
): Promise<QueryStatus> {
  const { cache_key, project } = prepared;
  if (client_query_id === null && refresh !== 'force_async') {
    const same = await findRunningQuery(pool, { team_id: project.team_id, user_id }, cache_key);
    if (same) return same;
  }
  const id = client_query_id ?? randomUUID();
  const { registered, status } = await registerQuery(pool, {
    ...jobOf(prepared),
    id,
    user_id,
    query_async: true,
  });
  if (!registered) {
    if (status.cache_key !== cache_key || status.user_id !== user_id) throw new QueryIdInUse();
    return status;
  }
  // Counted after the registration, so that concurrent requests cannot exceed the limit together.
  const limit = settings.EXPORTD_QUERY_PROJECT_QUEUE_SIZE;
  if ((await countUnfinished(pool, project.team_id)) > limit) {
    await deleteQuery(pool, status.execution_id);
    throw new BackgroundQueueFull(limit, retryAfterSeconds);
  }
  try {
    await background.start(status);
  } catch (error) {
    logger.warn({ err: error, query_id: id }, 'Could not start a background query.');
    await deleteQuery(pool, status.execution_id);
    throw new BackgroundUnavailable();
  }
  return status;
}

/**
 * Runs a query while the client waits, in the server process: it needs neither Temporal nor a worker, and ends with
 * that process or when the client disconnects. A query with a client id has a status and can be cancelled; a second
 * request with the same id waits for the result of the first.
 * @throws QueryError, QueryIdInUse, QuerySlotsBusy, QueryInterrupted, ClientDisconnected
 */
async function runForeground(
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
    user_id: request.user_id,
    query_async: false,
  });
  if (registered) return runRegistered(service, { ...request, execution_id: status.execution_id }, prepared);
  if (status.cache_key !== prepared.cache_key || status.user_id !== request.user_id) throw new QueryIdInUse();
  const ended = await waitForOtherRequest(service, status, request.signal);
  if (unstartedCodes.has(ended.error_code)) return runForeground(service, request, prepared);
  return responseOfOther(service, ended);
}

type ForegroundRequest = Pick<QueryRequest, 'team_id' | 'key_id' | 'user_id' | 'signal' | 'client_query_id'>;

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
  try {
    return await service.running.run(request, async (query) => {
      if (!(await claimQuery(service.pool, executionId))) throw new QueryCancelled();
      const result = await calculate(service, prepared, query);
      await finishQuery(service.pool, executionId, { status: 'completed', result_id: result.id });
      return responseOf(result);
    });
  } catch (error) {
    const outcome = outcomeOfError(error);
    await finishQuery(service.pool, executionId, outcome);
    if (outcome.status === 'cancelled') throw new QueryError(cancelledCode, cancelledMessage);
    throw error;
  }
}

/** How often a request looks whether the query of another one has ended, in milliseconds. */
const otherRequestPollMs = 250;

/** Waits for the end of a query that another request started with the same id. */
async function waitForOtherRequest(
  service: QueryService,
  status: QueryStatus,
  signal: AbortSignal,
): Promise<QueryStatus> {
  if (hasEnded(status)) return status;
  if (service.running.interrupted()) throw new QueryInterrupted();
  await wait(otherRequestPollMs);
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

/** The response from the cache. If the client gave an id, the result is recorded under it as well. */
async function respondFromCache(
  service: QueryService,
  request: QueryRequest,
  prepared: PreparedQuery,
  cached: QueryResult,
): Promise<QueryResponse | undefined> {
  const { client_query_id: id, user_id } = request;
  const running = await runningStatus(service, request, prepared);
  const response = await loadCached(service, prepared, cached, running);
  if (response && id !== null)
    await recordCacheHit(service.pool, { ...jobOf(prepared), id, user_id, result_id: cached.id });
  return response;
}

/** Undefined if the result has been deleted in the meantime. */
async function loadCached(
  { pool }: QueryService,
  { project }: PreparedQuery,
  { id }: QueryResult,
  query_status: StatusResponse | null,
): Promise<QueryResponse | undefined> {
  const found = await loadOutput(pool, project.team_id, id);
  return found && toQueryResponse(found, { is_cached: true, query_status });
}

async function runningStatus(
  { pool, settings }: QueryService,
  { user_id }: QueryRequest,
  { project, cache_key }: PreparedQuery,
): Promise<StatusResponse | null> {
  const status = await findRunningQuery(pool, { team_id: project.team_id, user_id }, cache_key);
  return status ? toStatusResponse(status, settings) : null;
}

/** How often a cancellation looks whether the query has ended, in milliseconds. */
const cancelPollMs = 50;

/**
 * Cancels a query in whichever process runs it and waits until its statement has ended in PostgreSQL. A query that has
 * ended is left unchanged.
 * @returns false if the user has sent no such query.
 */
export async function cancelQuery(
  service: QueryService,
  { team_id: teamId, user_id: userId, id }: Pick<QueryStatus, 'team_id' | 'user_id' | 'id'>,
): Promise<boolean> {
  const { pool, settings, background, logger } = service;
  const found = await readStatus(pool, teamId, id, userId);
  if (!found) return false;
  if (hasEnded(found)) return true;
  await requestCancel(pool, found.execution_id);
  if (found.query_async)
    await background.cancel(found).catch((error: unknown) => {
      logger.warn({ err: error, query_id: id }, 'Could not cancel the workflow of a cancelled query.');
    });
  for (
    const deadline = performance.now() + settings.EXPORTD_QUERY_CANCEL_TIMEOUT;
    performance.now() < deadline;
  ) {
    const now = await readStatus(pool, teamId, id);
    if (now?.execution_id !== found.execution_id || hasEnded(now)) return true;
    await wait(cancelPollMs);
  }
  await finishQuery(pool, found.execution_id, { status: 'cancelled' });
  return true;
}
