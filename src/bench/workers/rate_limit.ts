import { setTimeout as delay } from 'node:timers/promises';

/**
 * Limits a rate of bytes. Each call waits until its bytes may pass.
 * @param burstMs the time for which bytes may pass at once after a pause or late timers
 */
export function createRateLimit(bytesPerSecond: number, burstMs: number): (bytes: number) => Promise<void> {
  let freeAt = 0;
  return async (bytes) => {
    freeAt = Math.max(freeAt, performance.now() - burstMs) + (bytes / bytesPerSecond) * 1_000;
    await delay(Math.max(0, freeAt - performance.now()));
  };
}
