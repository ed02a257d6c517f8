import type { Settings } from '../config/settings.ts';
import type { Pool } from '../journal/database.ts';

/** How long a query that never ended is kept: far longer than any runs. */
const abandonedAfter = "interval '1 day'";

/**
 * Deletes what is expired of the query endpoint: statuses, requests that are out of the hour, and answers that are too
 * old for the cache, or have a newer one and no status that names them.
 * @returns how many statuses and answers were deleted.
 */
export async function deleteExpiredQueries(
  pool: Pool,
  settings: Pick<Settings, 'EXPORTD_QUERY_CACHE_TTL'>,
): Promise<number> {
  const statuses = await pool.query(
    `delete from exportd.queries where expiration_time < clock_timestamp()
       or (end_time is null and start_time < clock_timestamp() - ${abandonedAfter})`,
  );
  const answers = await pool.query(
    `delete from exportd.query_results result
     where not exists (select from exportd.queries where result_id = result.id)
       and (computed_at < clock_timestamp() - $1 * interval '1 millisecond' or exists (
         select from exportd.query_results newer
         where newer.team_id = result.team_id and newer.cache_key = result.cache_key
           and newer.computed_at > result.computed_at and newer.computed_at < clock_timestamp() - interval '1 minute'))`,
    [settings.EXPORTD_QUERY_CACHE_TTL],
  );
  await pool.query(
    `delete from exportd.query_requests where requested_at < clock_timestamp() - interval '1 hour'`,
  );
  return (statuses.rowCount ?? 0) + (answers.rowCount ?? 0);
}
