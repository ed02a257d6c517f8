import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Settings } from '../config/settings.ts';
import type { Pool } from '../journal/database.ts';
import { admitQueryRequest } from '../queries/rate_limiter.ts';
import { ApiError } from './api_error.ts';
import { callerOf } from './authentication.ts';

/**
 * Counts a request to the query endpoint and tells the caller how many are left. Comes right after the key was checked,
 * so that requests with nonsense in their bodies count as well.
 * @throws ApiError 429
 */
export async function rateLimitQueries(
  { pool, settings }: { readonly pool: Pool; readonly settings: Pick<Settings, 'EXPORTD_QUERIES_PER_HOUR'> },
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const decision = await admitQueryRequest(
    pool,
    callerOf(request).project_id,
    settings.EXPORTD_QUERIES_PER_HOUR,
  );
  reply.headers({
    'x-ratelimit-limit': String(decision.limit),
    'x-ratelimit-remaining': String(decision.remaining),
    'x-ratelimit-reset': String(Math.ceil(decision.resets_at.getTime() / 1_000)),
  });
  if (!decision.admitted)
    throw new ApiError(
      429,
      'throttled',
      `Request was throttled: a project has ${decision.limit} queries an hour. Expected available in ${decision.wait_seconds} seconds. For large volumes of data use batch exports.`,
      { headers: { 'retry-after': String(decision.wait_seconds) } },
    );
}
