import type { Pool } from '../journal/database.ts';
import { createKeyedSemaphore } from '../concurrency/keyed_semaphore.ts';

/** The decision of the rate limiter on one request. */
export interface RateLimitDecision {
  readonly admitted: boolean;
  readonly limit: number;
  /** Requests that would still be admitted now. */
  readonly remaining: number;
  /** When one more request than now will be admitted. */
  readonly resets_at: Date;
  /** Seconds until then, rounded up. */
  readonly wait_seconds: number;
}

/** Counts requests to the query endpoint. */
export interface QueryRateLimiter {
  admit(teamId: number): Promise<RateLimitDecision>;
}

/**
 * Creates the limiter of a process. A project's requests are counted one after another, as its row in the control
 * database requires. They wait for each other here, because there each would occupy a connection that other projects need.
 */
export function createQueryRateLimiter(pool: Pool, limit: number): QueryRateLimiter {
  const turns = createKeyedSemaphore<number>({ perKey: 1 });
  return {
    admit: async (teamId) => {
      const release = await turns.acquire(teamId);
      try {
        return await admitQueryRequest(pool, teamId, limit);
      } finally {
        release();
      }
    },
  };
}

/**
 * Admits a request of a project to the query endpoint unless the requests of the last hour have used up the limit. The
 * window slides, and all processes share its rows in the control database.
 */
export async function admitQueryRequest(
  pool: Pool,
  teamId: number,
  limit: number,
): Promise<RateLimitDecision> {
  const { rows } = await pool.query<{
    admitted: boolean;
    used: number;
    resets_at: string;
    wait_seconds: number;
  }>(
    `select admitted, used, resets_at, ceil(extract(epoch from resets_at - decided_at))::integer as wait_seconds
     from exportd.admit_query_request($1, $2)`,
    [teamId, limit],
  );
  const [decision] = rows;
  if (!decision) throw new Error('admit_query_request returned no row.');
  return {
    admitted: decision.admitted,
    limit,
    remaining: Math.max(0, limit - decision.used),
    resets_at: new Date(decision.resets_at),
    wait_seconds: Math.max(1, decision.wait_seconds),
  };
}
