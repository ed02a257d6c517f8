import { setTimeout as wait } from 'node:timers/promises';
import type { QueryService } from './query_service.ts';
import { finishQuery, hasEnded, readStatus, requestCancel } from './statuses.ts';

/**
 * Cancels a query in whichever process runs it and waits until its statement has ended in PostgreSQL. A query that has
 * ended is left unchanged.
 * @returns false if no such query exists.
 */
export async function cancelQuery(service: QueryService, teamId: number, id: string): Promise<boolean> {
  const { pool, settings, background, logger } = service;
  const found = await readStatus(pool, teamId, id);
  if (!found) return false;
  if (hasEnded(found)) return true;
  const ttlMs = settings.EXPORTD_QUERY_STATUS_TTL;
  await requestCancel(pool, found.execution_id, ttlMs);
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
    await wait(settings.EXPORTD_QUERY_POLL_INTERVAL / 5);
  }
  await finishQuery(pool, found.execution_id, { status: 'cancelled' }, ttlMs);
  return true;
}
