import { randomUUID } from 'node:crypto';
import { jobOf, type PreparedQuery, type QueryRequest } from './prepared_query.ts';
import type { QueryService } from './query_service.ts';
import { BackgroundUnavailable, QueryIdInUse } from './query_errors.ts';
import { registerQuery, findRunningQuery, deleteQuery, type QueryStatus } from './statuses.ts';

/**
 * Starts a background query, or joins one that already runs: under the client's id, or the same query if the client
 * gave no id and does not force a calculation.
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
    logger.warn({ err: error, query_id: id }, 'Could not start a background query.');
    await deleteQuery(pool, status.execution_id);
    throw new BackgroundUnavailable();
  }
  return status;
}
