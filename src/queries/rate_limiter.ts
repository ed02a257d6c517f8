import { createKeyedSemaphore } from '../concurrency/keyed_semaphore.ts';
import type { Settings } from '../config/settings.ts';
import type { Pool } from '../journal/database.ts';

/** The decision of the rate limiter on one request. */
interface RateLimitDecision {
  readonly admitted: boolean;
  readonly limit: number;
  /** Requests that would still be admitted now. */
  readonly remaining: number;
  /** When one more request than now will be admitted. */
  readonly resets_at: Date;
  /** Seconds until then, rounded up. */
  readonly wait_seconds: number;
}

/** Who sends requests to the query endpoint. */
interface RequestOwner {
  readonly team_id: number;
  /** A person at the console, with a limit of their own; null for the API keys of the project, which share one. */
  readonly user_id: number | null;
}

/** Counts requests to the query endpoint. */
export interface QueryRateLimiter {
  admit(owner: RequestOwner): Promise<RateLimitDecision>;
}

type RateLimitSettings = Pick<Settings, 'EXPORTD_QUERIES_PER_HOUR' | 'EXPORTD_CONSOLE_QUERIES_PER_HOUR'>;

/** What the control database has for the API keys of a project in place of a user. */
const apiKeys = 0;

/**
 * Creates the limiter of a process. A project's requests are counted one after another, as its row in the control
 * database requires. They wait for each other here, because there each would occupy a connection that other projects need.
 */
export function createQueryRateLimiter(pool: Pool, settings: RateLimitSettings): QueryRateLimiter {
  const turns = createKeyedSemaphore<number>({ perKey: 1 });
  return {
    admit: async (owner) => {
      const release = await turns.acquire(owner.team_id);
      const { EXPORTD_QUERIES_PER_HOUR: ofKeys, EXPORTD_CONSOLE_QUERIES_PER_HOUR: ofPerson } = settings;
      try {
        return await admitQueryRequest(pool, owner, owner.user_id === null ? ofKeys : ofPerson);
      } finally {
        release();
      }
    },
  };
}

/**
 * Admits a request to the query endpoint unless the requests of its owner in the last hour have used up the limit. The
 * window slides, and all processes share its rows in the control database.
 */
export async function admitQueryRequest(
  pool: Pool,
  { team_id, user_id }: RequestOwner,
  limit: number,
): Promise<RateLimitDecision> {
  const { rows } = await pool.query<{
    admitted: boolean;
    used: number;
    resets_at: string;
    wait_seconds: number;
  }>(
    `select admitted, used, resets_at, ceil(extract(epoch from resets_at - decided_at))::integer as wait_seconds
     from exportd.admit_query_request($1, $2, $3)`,
    [team_id, user_id ?? apiKeys, limit],
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
