import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** A process that a test has started, or that one of these has started. */
interface LeftProcess {
  readonly pid: number;
  /** Its program and arguments. */
  readonly command: string;
}

/**
 * The processes of a run of Jest: those with its folder in their environment, which every process inherits that tests start.
 * Empty on systems without /proc.
 */
export function processesOf(runFolder: string): LeftProcess[] {
  const pids = process.platform === 'linux' ? readdirSync('/proc').filter((name) => /^\d+$/.test(name)) : [];
  return pids.flatMap((name) => {
    const pid = Number(name);
    try {
      if (pid === process.pid || !readFileSync(`/proc/${name}/environ`, 'utf8').includes(runFolder))
        return [];
      return [{ pid, command: readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ').trim() }];
    } catch {
      // It has exited, or belongs to another user.
      return [];
    }
  });
}

/** Ends processes at once. */
export function killAll(processes: readonly LeftProcess[]): void {
  for (const { pid } of processes)
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has exited.
    }
}

/**
 * Ends what a run of Jest has left.
 * @param timeoutMs how long a process that was told to end may take
 * @returns what did not end by itself
 */
export async function endProcessesOf(runFolder: string, timeoutMs = 15_000): Promise<LeftProcess[]> {
  const deadline = performance.now() + timeoutMs;
  let left = processesOf(runFolder);
  while (left.length > 0 && performance.now() < deadline) {
    await delay(100);
    left = processesOf(runFolder);
  }
  killAll(left);
  return left;
}
