import type { FastifyReply, FastifyRequest } from 'fastify';
import type { QueryRateLimiter } from '../queries/rate_limiter.ts';
import { ApiError } from './api_error.ts';
import { callerOf } from './authentication.ts';

/**
 * Counts a request to the query endpoint and sets the rate limit headers. Runs right after authentication, so requests
 * with invalid bodies are counted too.
 * @throws ApiError 429
 */
export async function rateLimitQueries(
  { queryRateLimiter }: { readonly queryRateLimiter: QueryRateLimiter },
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const decision = await queryRateLimiter.admit(callerOf(request).project_id);
  reply.headers({
    'x-ratelimit-limit': String(decision.limit),
    'x-ratelimit-remaining': String(decision.remaining),
    'x-ratelimit-reset': String(Math.ceil(decision.resets_at.getTime() / 1_000)),
  });
  if (!decision.admitted)
    throw new ApiError(
      429,
      'throttled',
      `Rate limit exceeded: a project can run ${decision.limit} queries per hour (EXPORTD_QUERIES_PER_HOUR). Retry in ${decision.wait_seconds} seconds. For large volumes of data, use a batch export.`,
      { headers: { 'retry-after': String(decision.wait_seconds) } },
    );
}
