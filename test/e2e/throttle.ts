import { createRateLimit } from '../bench/workers/slow_servers.ts';
import type { Interceptor } from './s3_proxy.ts';

/** The burst allowed after late timers, so that a busy machine does not slow the connection further. */
const burstMs = 2_000;

/** Limits the bandwidth that all requests share. */
export function throttle(bytesPerSecond: number): Interceptor {
  const limit = createRateLimit(bytesPerSecond, burstMs);
  return {
    during: async (_, bytes) => {
      await limit(bytes);
      return undefined;
    },
  };
}
