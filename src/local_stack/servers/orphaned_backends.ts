import { readFileSync, readdirSync, readlinkSync, realpathSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

const timeoutMs = 10_000;

/** Whether a process is a backend or background worker of a server with this data folder. */
function isBackend(pid: string, data: string): boolean {
  try {
    return (
      readlinkSync(`/proc/${pid}/cwd`) === data &&
      readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('postgres: ')
    );
  } catch {
    return false;
  }
}

const backendsOf = (data: string): readonly number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && isBackend(name, data))
    .map(Number);

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has exited, or belongs to another user: PostgreSQL reports that when it starts.
  }
}

/**
 * Kills the backends of a server that was killed. A backend notices that only after its current statement, and no other
 * server can start with the same data before. Nothing is lost: its transaction can no longer commit. Does nothing on
 * systems without /proc, where the next start has to wait.
 */
export async function killOrphanedBackends(data: string): Promise<void> {
  if (process.platform !== 'linux') return;
  const folder = realpathSync(data);
  const deadline = performance.now() + timeoutMs;
  for (
    let running = backendsOf(folder);
    running.length > 0 && performance.now() < deadline;
    running = backendsOf(folder)
  ) {
    running.forEach(kill);
    await delay(20);
  }
}
