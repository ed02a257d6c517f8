/**
 * Waits until a condition holds, looking again every 50 ms.
 * @throws Error that says what was waited for, after `deadlineMs`.
 */
export async function until(
  condition: () => Promise<boolean> | boolean,
  what: string | (() => string),
  deadlineMs = 90_000,
): Promise<void> {
  const end = Date.now() + deadlineMs;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`Waited in vain: ${typeof what === 'string' ? what : what()}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
