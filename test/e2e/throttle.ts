import { setTimeout as delay } from 'node:timers/promises';
import type { Interceptor } from './s3_proxy.ts';

/** The burst allowed after late timers, so that a busy machine does not slow the connection further. */
const burstMs = 2_000;

/** Limits the bandwidth that all requests share. */
export function throttle(bytesPerSecond: number): Interceptor {
  let freeAt = 0;
  return {
    during: async (_, bytes) => {
      freeAt = Math.max(freeAt, performance.now() - burstMs) + (bytes / bytesPerSecond) * 1_000;
      await delay(Math.max(0, freeAt - performance.now()));
      return undefined;
    },
  };
}
