import { setTimeout as delay } from 'node:timers/promises';

const firstPollIntervalMs = 20;
/** With 1.25, a wait of a second was twelve requests, with 1.6 seven, and it ends a twentieth later. */
const pollIntervalGrowth = 1.6;
/** Most conditions are a request and a statement: polled every 20 ms, the waits of a run took more CPU than its work. Only waits of seconds reach it. */
const maxPollIntervalMs = 1_000;

/**
 * Polls a condition until it holds, so that no test sleeps. An error that the condition throws fails the test at once.
 * @param condition holds when it returns anything but false, null and undefined.
 * @param what the condition in words, for the error; a function can report the state at the timeout.
 * @returns what the condition returned.
 * @throws Error that names the condition, after `timeoutMs`.
 */
export async function waitFor<Result>(
  condition: () => Result | Promise<Result>,
  what: string | (() => string),
  timeoutMs = 180_000,
): Promise<Exclude<Result, false | null | undefined>> {
  const deadline = performance.now() + timeoutMs;
  let intervalMs = firstPollIntervalMs;
  for (;;) {
    const result = await condition();
    if (result !== false && result !== null && result !== undefined)
      return result as Exclude<Result, false | null | undefined>;
    if (performance.now() > deadline)
      throw new Error(`Timed out waiting for: ${typeof what === 'string' ? what : what()}`);
    await delay(intervalMs);
    intervalMs = Math.min(intervalMs * pollIntervalGrowth, maxPollIntervalMs);
  }
}
