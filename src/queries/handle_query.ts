import { toQueryResponse, type QueryResponse } from './query_response.ts';
import { isFresh } from './freshness.ts';
import { jobOf, prepareQuery, type PreparedQuery, type QueryRequest } from './prepared_query.ts';
import type { QueryService } from './query_service.ts';
import { refreshModes } from './refresh_modes.ts';
import { findCached, loadOutput, type QueryResult } from './results.ts';
import { runForeground } from './run_foreground.ts';
import { toStatusResponse, type StatusResponse } from './status_response.ts';
import { startBackground } from './start_background.ts';
import { findRunningQuery, recordCacheHit } from './statuses.ts';

/**
 * Handles a request: returns a cached result, runs the query, or starts it and returns its status.
 * @throws QueryError, QuerySchemaError, QueryIdInUse, QuerySlotsBusy, BackgroundQueueFull, BackgroundUnavailable,
 * QueryInterrupted, ClientDisconnected
 */
export async function handleQuery(service: QueryService, request: QueryRequest): Promise<QueryResponse> {
  const prepared = await prepareQuery(service, request);
  const { cache_key } = prepared;
  const { otherwise } = refreshModes[request.refresh];
  const cached = await cachedFor(service, request, prepared);
  if (cached && isAccepted(request, prepared, cached)) {
    const response = await respondFromCache(service, request, prepared, cached);
    if (response) return response;
  }
  if (otherwise === 'miss')
    return { fields: { cache_key, query_status: await runningStatus(service, prepared) }, json: null };
  if (otherwise === 'run') return runForeground(service, request, prepared);
  const query_status = toStatusResponse(await startBackground(service, request, prepared), service.settings);
  if (request.refresh === 'force_async') return { fields: { query_status }, json: null };
  return (
    (cached && (await loadCached(service, prepared, cached, query_status))) ?? {
      fields: { cache_key, query_status },
      json: null,
    }
  );
}

async function cachedFor(
  { pool, settings }: QueryService,
  { refresh }: QueryRequest,
  { project, cache_key }: PreparedQuery,
): Promise<QueryResult | undefined> {
  if (refreshModes[refresh].accepts === 'nothing') return undefined;
  return findCached(pool, {
    team_id: project.team_id,
    cache_key,
    maxAgeMs: settings.EXPORTD_QUERY_CACHE_TTL,
  });
}

function isAccepted(
  { refresh }: QueryRequest,
  { form, now }: PreparedQuery,
  { computed_at }: QueryResult,
): boolean {
  const { accepts } = refreshModes[refresh];
  if (accepts === 'anything' || accepts === 'nothing') return accepts === 'anything';
  return isFresh(computed_at, form.freshness, now, accepts);
}

/** The response from the cache. If the client gave an id, the result is recorded under it as well. */
async function respondFromCache(
  service: QueryService,
  { client_query_id: id }: QueryRequest,
  prepared: PreparedQuery,
  cached: QueryResult,
): Promise<QueryResponse | undefined> {
  const response = await loadCached(service, prepared, cached, await runningStatus(service, prepared));
  const ttlMs = service.settings.EXPORTD_QUERY_STATUS_TTL;
  if (response && id !== null)
    await recordCacheHit(service.pool, { ...jobOf(prepared), id, result_id: cached.id, ttlMs });
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
  { project, cache_key }: PreparedQuery,
): Promise<StatusResponse | null> {
  const status = await findRunningQuery(pool, project.team_id, cache_key);
  return status ? toStatusResponse(status, settings) : null;
}
