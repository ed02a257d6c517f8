import { randomUUID } from 'node:crypto';
import { jobOf, type PreparedQuery, type QueryRequest } from './prepared_query.ts';
import type { QueryService } from './query_service.ts';
import { BackgroundQueueFull, BackgroundUnavailable, QueryIdInUse } from './query_errors.ts';
import {
  countUnfinished,
  deleteQuery,
  findRunningQuery,
  registerQuery,
  type QueryStatus,
} from './statuses.ts';

/** `Retry-After` of a background query that exceeds the limit; when one of the others ends is unknown. */
const retryAfterSeconds = 30;

/**
 * Starts a background query, or joins one that already runs: under the client's id, or the same query if the client
 * gave no id and does not force a calculation.
 * @throws QueryIdInUse, BackgroundQueueFull, BackgroundUnavailable
 */
export async function startBackground(
  { pool, background, logger, settings }: QueryService,
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
