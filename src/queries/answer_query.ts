import { completeAnswer } from './complete_answer.ts';
import { isFresh } from './freshness.ts';
import { orderOf, prepareQuery, type PreparedQuery, type QueryRequest } from './prepared_query.ts';
import type { QueryDesk } from './query_desk.ts';
import { refreshModes } from './refresh_modes.ts';
import { findCached, loadAnswer, type QueryResult } from './results.ts';
import { runForeground } from './run_foreground.ts';
import { shownStatus, type ShownStatus } from './shown_status.ts';
import { startBackground } from './start_background.ts';
import { findUnderWay, recordAnswered } from './statuses.ts';

type Answer = Record<string, unknown>;

/**
 * Answers a request: from the cache, by running the query, or with the status of a query that was started.
 * @throws QueryInvalid, QueryMismatch, QueryIdInUse, BackgroundUnreachable, QueryInterrupted
 */
export async function answerQuery(desk: QueryDesk, request: QueryRequest): Promise<Answer> {
  const prepared = await prepareQuery(desk, request);
  const { cache_key } = prepared;
  const { otherwise } = refreshModes[request.refresh];
  const cached = await cachedFor(desk, request, prepared);
  if (cached && isAccepted(request, prepared, cached)) {
    const answer = await fresh(desk, request, prepared, cached);
    if (answer) return answer;
  }
  if (otherwise === 'miss') return { cache_key, query_status: await underWay(desk, prepared) };
  if (otherwise === 'run') return runForeground(desk, request.client_query_id, prepared);
  const query_status = shownStatus(await startBackground(desk, request, prepared));
  if (request.refresh === 'force_async') return { query_status };
  return (cached && (await load(desk, prepared, cached, query_status))) ?? { cache_key, query_status };
}

async function cachedFor(
  { pool, settings }: QueryDesk,
  { refresh }: QueryRequest,
  { project, cache_key }: PreparedQuery,
): Promise<QueryResult | undefined> {
  if (refreshModes[refresh].accepts === 'nothing') return undefined;
  return findCached(pool, {
    team_id: project.team_id,
    cache_key,
    keptMs: settings.EXPORTD_QUERY_CACHE_MS,
  });
}

function isAccepted(
  { refresh }: QueryRequest,
  { parsed, project, now }: PreparedQuery,
  { computed_at }: QueryResult,
): boolean {
  const { accepts } = refreshModes[refresh];
  if (accepts === 'anything' || accepts === 'nothing') return accepts === 'anything';
  return isFresh(computed_at, parsed.freshness(project, now), now, accepts);
}

/** A cached answer that is good enough; a client that gave an id finds it under that id as well. */
async function fresh(
  desk: QueryDesk,
  { client_query_id: id }: QueryRequest,
  prepared: PreparedQuery,
  cached: QueryResult,
): Promise<Answer | undefined> {
  const answer = await load(desk, prepared, cached, await underWay(desk, prepared));
  const keptMs = desk.settings.EXPORTD_QUERY_STATUS_MS;
  if (answer && id !== null)
    await recordAnswered(desk.pool, { ...orderOf(prepared), id, result_id: cached.id, keptMs });
  return answer;
}

/** Undefined when the answer has been deleted meanwhile. */
async function load(
  { pool }: QueryDesk,
  { project }: PreparedQuery,
  { id }: QueryResult,
  query_status: ShownStatus | null,
): Promise<Answer | undefined> {
  const found = await loadAnswer(pool, project.team_id, id);
  return found && completeAnswer(found.answer, found, { is_cached: true, query_status });
}

async function underWay(
  { pool }: QueryDesk,
  { project, cache_key }: PreparedQuery,
): Promise<ShownStatus | null> {
  const status = await findUnderWay(pool, project.team_id, cache_key);
  return status ? shownStatus(status) : null;
}
