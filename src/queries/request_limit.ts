import type { Pool } from '../journal/database.ts';

/** Whether a request may be served, and how many more may be. */
export interface CountedRequest {
  readonly admitted: boolean;
  readonly limit: number;
  /** Requests that would be admitted now. */
  readonly remaining: number;
  /** When one more than now will be admitted. */
  readonly free_at: Date;
  /** Whole seconds until then, never too few. */
  readonly wait_seconds: number;
}

/**
 * Counts a request of a project to the query endpoint, unless those of the last hour have used up the limit. The hour
 * slides, and all processes count in the same rows of the database.
 */
export async function countQueryRequest(pool: Pool, teamId: number, limit: number): Promise<CountedRequest> {
  const { rows } = await pool.query<{
    admitted: boolean;
    used: number;
    free_at: string;
    wait_seconds: number;
  }>(
    `select admitted, used, free_at, ceil(extract(epoch from free_at - counted_at))::integer as wait_seconds
     from exportd.count_query_request($1, $2)`,
    [teamId, limit],
  );
  const [counted] = rows;
  if (!counted) throw new Error('The database did not count a request.');
  return {
    admitted: counted.admitted,
    limit,
    remaining: Math.max(0, limit - counted.used),
    free_at: new Date(counted.free_at),
    wait_seconds: Math.max(1, counted.wait_seconds),
  };
}
