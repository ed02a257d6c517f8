import { setTimeout as delay } from 'node:timers/promises';

/**
 * Asks again and again until the condition holds, so that no test has to sleep. An error fails the test at once.
 * @param condition any answer but false, null and undefined means that it holds.
 * @param what what is waited for; a function may say how far it got.
 * @returns the answer.
 * @throws Error that says what was waited for, after `patienceMs`.
 */
export async function until<Answer>(
  condition: () => Answer | Promise<Answer>,
  what: string | (() => string),
  patienceMs = 180_000,
): Promise<Exclude<Answer, false | null | undefined>> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const answer = await condition();
    if (answer !== false && answer !== null && answer !== undefined)
      return answer as Exclude<Answer, false | null | undefined>;
    if (performance.now() > deadline)
      throw new Error(`Waited in vain: ${typeof what === 'string' ? what : what()}`);
    await delay(20);
  }
}
