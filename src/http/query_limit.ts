import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Settings } from '../config/settings.ts';
import type { Pool } from '../journal/database.ts';
import { countQueryRequest } from '../queries/request_limit.ts';
import { ApiError } from './api_error.ts';
import { callerOf } from './authentication.ts';

/**
 * Counts a request to the query endpoint and tells the caller how many are left. Comes right after the key was checked,
 * so that requests with nonsense in their bodies count as well.
 * @throws ApiError 429
 */
export async function limitQueries(
  { pool, settings }: { readonly pool: Pool; readonly settings: Pick<Settings, 'EXPORTD_QUERIES_PER_HOUR'> },
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const counted = await countQueryRequest(
    pool,
    callerOf(request).project_id,
    settings.EXPORTD_QUERIES_PER_HOUR,
  );
  reply.headers({
    'x-ratelimit-limit': String(counted.limit),
    'x-ratelimit-remaining': String(counted.remaining),
    'x-ratelimit-reset': String(Math.ceil(counted.free_at.getTime() / 1_000)),
  });
  if (!counted.admitted)
    throw new ApiError(
      429,
      'throttled',
      `Request was throttled: a project has ${counted.limit} queries an hour. Expected available in ${counted.wait_seconds} seconds. For large volumes of data use batch exports.`,
      { headers: { 'retry-after': String(counted.wait_seconds) } },
    );
}
