import { setTimeout as delay } from 'node:timers/promises';
import { lastLines, type Child } from './child_processes.ts';
import { asDiskFull } from './data_folder.ts';
import { LaunchError } from './launch_error.ts';

/**
 * Waits until a child process is ready.
 * @throws LaunchError when it exits or is not ready in time. The message includes the last lines of its log.
 */
export async function waitUntilReady(
  child: Child,
  isReady: () => Promise<boolean>,
  timeoutMs = 60_000,
): Promise<void> {
  const { name } = child.program;
  const deadline = performance.now() + timeoutMs;
  const exit = child.exited.then((how) => ({ how }));
  for (;;) {
    if (await isReady().catch(() => false)) return;
    const exited = await Promise.race([exit, delay(25)]);
    const log = () => `Last lines of ${child.logFile}:\n${lastLines(child.logFile)}`;
    if (exited)
      throw (
        asDiskFull(lastLines(child.logFile), child.logFile) ??
        new LaunchError(`${name} ${exited.how} before it was ready. ${log()}`)
      );
    if (performance.now() > deadline)
      throw new LaunchError(`${name} was not ready after ${String(timeoutMs / 1_000)} s. ${log()}`);
  }
}
