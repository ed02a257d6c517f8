import { setTimeout as delay } from 'node:timers/promises';
import { lastLines, type Child } from './children.ts';
import { asDiskFull } from './data_folder.ts';
import { LaunchError } from './launch_error.ts';

/**
 * Waits until a process that was started answers.
 * @throws LaunchError when it ends before, or does not answer in time; the message holds the end of its log.
 */
export async function untilReady(
  child: Child,
  answers: () => Promise<boolean>,
  patienceMs = 60_000,
): Promise<void> {
  const { name } = child.program;
  const deadline = performance.now() + patienceMs;
  const ending = child.exited.then((how) => ({ how }));
  for (;;) {
    if (await answers().catch(() => false)) return;
    const ended = await Promise.race([ending, delay(25)]);
    const log = () => `The end of ${child.logFile}:\n${lastLines(child.logFile)}`;
    if (ended)
      throw (
        asDiskFull(lastLines(child.logFile), child.logFile) ??
        new LaunchError(`${name} ${ended.how} before it was ready. ${log()}`)
      );
    if (performance.now() > deadline)
      throw new LaunchError(`${name} has not answered for ${String(patienceMs / 1_000)} s. ${log()}`);
  }
}
