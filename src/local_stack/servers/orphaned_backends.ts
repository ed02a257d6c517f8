import { readFileSync, readdirSync, readlinkSync, realpathSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

const patienceMs = 10_000;

/** Whether a process serves a session of a server with these data, or is one of its own workers. */
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
    // It has ended meanwhile, or is another user's, which PostgreSQL then names.
  }
}

/**
 * Ends what a killed server of these data has left running. A session in the middle of a statement does not see that its
 * server is gone until the statement has ended, and no other server can start on the same data before. Nothing is lost:
 * its transaction could not be committed any more. Systems without /proc have to wait instead.
 */
export async function endOrphanedBackends(data: string): Promise<void> {
  if (process.platform !== 'linux') return;
  const folder = realpathSync(data);
  const deadline = performance.now() + patienceMs;
  for (
    let left = backendsOf(folder);
    left.length > 0 && performance.now() < deadline;
    left = backendsOf(folder)
  ) {
    left.forEach(kill);
    await delay(20);
  }
}
