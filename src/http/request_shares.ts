import type { FastifyRequest } from 'fastify';
import { createKeyedSemaphore } from '../concurrency/keyed_semaphore.ts';
import { type Bound, bounds, boundText } from '../config/bounds.ts';
import { ApiError, retryAfter } from './api_error.ts';
import { callerOf } from './plugins/authentication.ts';

/** Does the work of a request within the share of its project and key. An abort ends the wait. @throws ApiError 429 */
type Share = <Result>(
  request: FastifyRequest,
  signal: AbortSignal,
  work: () => Promise<Result>,
) => Promise<Result>;

/** The shares of requests that use more than a few short statements. */
export interface RequestShares {
  readonly previews: Share;
  readonly checks: Share;
  readonly tests: Share;
}

const retrySeconds = 5;

/**
 * Limits what a project, and each of its keys, has this server do at a time. Requests of a project wait for their turn,
 * so that those of others never do: at most `ofKey` of one key, and for a bounded time.
 */
export const createRequestShares = (): RequestShares => ({
  previews: createShare(
    'previews and estimates',
    bounds.previews,
    bounds.previewsOfProject,
    bounds.previewsOfKey,
  ),
  checks: createShare('checks', bounds.checks, bounds.checksOfProject, bounds.checksOfKey),
  tests: createShare('tests', bounds.tests, bounds.testsOfProject, bounds.testsOfKey),
});

function createShare(what: string, total: Bound, ofProject: Bound, ofKey: Bound): Share {
  const permits = createKeyedSemaphore<number, string>({ total: total.max, perKey: ofProject.max });
  /** Requests of each key that run or wait. */
  const pending = new Map<string, number>();
  const busy = (detail: string): ApiError =>
    new ApiError(429, 'throttled', `${detail} Retry later.`, retryAfter(retrySeconds));
  return async (request, signal, work) => {
    const { project_id, key_id } = callerOf(request);
    const before = pending.get(key_id) ?? 0;
    if (before >= ofKey.max)
      throw busy(`An API key can have ${boundText(ofKey)} ${what} at a time, running or waiting.`);
    pending.set(key_id, before + 1);
    try {
      const release = await permits.acquire(project_id, {
        member: key_id,
        signal,
        timeout: {
          ms: bounds.shareWait.max,
          error: () =>
            busy(
              `The server does ${boundText(ofProject)} ${what} of a project at a time, and others did not end within ${boundText(bounds.shareWait)}.`,
            ),
        },
      });
      try {
        return await work();
      } finally {
        release();
      }
    } finally {
      const left = (pending.get(key_id) ?? 1) - 1;
      if (left > 0) pending.set(key_id, left);
      else pending.delete(key_id);
    }
  };
}
