import { setTimeout as delay } from 'node:timers/promises';
import type { Intervention } from './s3_proxy.ts';

/** A line of so many bytes a second that all requests share. */
export function throttle(bytesPerSecond: number): Intervention {
  let freeAt = 0;
  return {
    passing: async (_, bytes) => {
      freeAt = Math.max(freeAt, performance.now()) + (bytes / bytesPerSecond) * 1_000;
      await delay(freeAt - performance.now());
      return undefined;
    },
  };
}
