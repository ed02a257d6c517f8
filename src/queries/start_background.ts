import { randomUUID } from 'node:crypto';
import { jobOf, type PreparedQuery, type QueryRequest } from './prepared_query.ts';
import type { QueryService } from './query_service.ts';
import { BackgroundUnavailable, QueryIdInUse } from './query_errors.ts';
import { registerQuery, findRunningQuery, deleteQuery, type QueryStatus } from './statuses.ts';

/**
 * Starts a query in the background, unless it is under way already: under the id of the client, or as the same query
 * when the client gave none and does not insist on a calculation of its own.
 * @throws QueryIdInUse, BackgroundUnavailable
 */
export async function startBackground(
  { pool, background, logger }: QueryService,
  { client_query_id, refresh }: QueryRequest,
  prepared: PreparedQuery,
): Promise<QueryStatus> {
  const { cache_key, project } = prepared;
  if (client_query_id === null && refresh !== 'force_async') {
    const same = await findRunningQuery(pool, project.team_id, cache_key);
    if (same) return same;
  }
  const id = client_query_id ?? randomUUID();
  const { registered, status } = await registerQuery(pool, { ...jobOf(prepared), id, query_async: true });
  if (!registered) {
    if (status.cache_key !== cache_key) throw new QueryIdInUse();
    return status;
  }
  try {
    await background.start(status);
  } catch (error) {
    logger.warn({ err: error, query_id: id }, 'a query could not be started in the background');
    await deleteQuery(pool, status.execution_id);
    throw new BackgroundUnavailable();
  }
  return status;
}
