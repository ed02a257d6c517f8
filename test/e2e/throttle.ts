import { setTimeout as delay } from 'node:timers/promises';
import type { Intervention } from './s3_proxy.ts';

/** What a timer that comes late on a busy machine may make good: else the line would be as slow as the machine. */
const burstMs = 2_000;

/** A line of so many bytes a second that all requests share. */
export function throttle(bytesPerSecond: number): Intervention {
  let freeAt = 0;
  return {
    passing: async (_, bytes) => {
      freeAt = Math.max(freeAt, performance.now() - burstMs) + (bytes / bytesPerSecond) * 1_000;
      await delay(freeAt - performance.now());
      return undefined;
    },
  };
}
