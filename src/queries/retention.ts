import type { Settings } from '../config/settings.ts';
import type { Pool } from '../journal/database.ts';

/** How long a query that never ended is kept; much longer than any query runs. */
const abandonedAfter = "interval '1 day'";

/**
 * Deletes expired statuses, rate-limiter requests older than an hour, and results that no status refers to and that are
 * too old for the cache or superseded by a newer one.
 * @returns the number of deleted statuses and results.
 */
export async function deleteExpiredQueries(
  pool: Pool,
  settings: Pick<Settings, 'EXPORTD_QUERY_CACHE_TTL'>,
): Promise<number> {
  const statuses = await pool.query(
    `delete from exportd.queries where expiration_time < clock_timestamp()
       or (end_time is null and start_time < clock_timestamp() - ${abandonedAfter})`,
  );
  const results = await pool.query(
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
  return (statuses.rowCount ?? 0) + (results.rowCount ?? 0);
}
