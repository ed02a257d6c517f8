import { setTimeout as wait } from 'node:timers/promises';
import type { QueryDesk } from './query_desk.ts';
import { endQuery, hasEnded, readStatus, requestCancel } from './statuses.ts';

/**
 * Cancels a query, whichever process runs it, and waits until its statement has ended in PostgreSQL. One that has ended
 * stays as it is.
 * @returns false when there is no such query.
 */
export async function cancelQuery(desk: QueryDesk, teamId: number, id: string): Promise<boolean> {
  const { pool, settings, background, logger } = desk;
  const found = await readStatus(pool, teamId, id);
  if (!found) return false;
  if (hasEnded(found)) return true;
  const keptMs = settings.EXPORTD_QUERY_STATUS_MS;
  await requestCancel(pool, found.execution_id, keptMs);
  if (found.query_async)
    await background.cancel(found).catch((error: unknown) => {
      logger.warn({ err: error, query_id: id }, 'the workflow of a cancelled query could not be told');
    });
  for (
    const deadline = performance.now() + settings.EXPORTD_QUERY_CANCEL_TIMEOUT_MS;
    performance.now() < deadline;
  ) {
    const now = await readStatus(pool, teamId, id);
    if (now?.execution_id !== found.execution_id || hasEnded(now)) return true;
    await wait(settings.EXPORTD_QUERY_POLL_MS / 5);
  }
  await endQuery(pool, found.execution_id, { status: 'cancelled' }, keptMs);
  return true;
}
