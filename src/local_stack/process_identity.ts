import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** A process, told apart from a later one that got the same id. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it began, in a form that only serves to be compared. */
  readonly started: string;
}

/** From /proc: boot and clock ticks since the boot; a process that has ended and waits for its parent is gone. */
function startedOnLinux(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${String(pid)}/stat`, 'utf8');
    // The name in brackets may hold spaces and brackets itself: the fields are counted after the last one.
    const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (state === 'Z' || state === 'X') return undefined;
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot} ${fields[18] ?? ''}`;
  } catch {
    return undefined;
  }
}

function startedElsewhere(pid: number): string | undefined {
  try {
    const started = execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
    return started === '' ? undefined : started;
  } catch {
    return undefined;
  }
}

/** Identifies a running process. @returns undefined when there is none of that id. */
export function identify(pid: number): ProcessIdentity | undefined {
  const started = process.platform === 'linux' ? startedOnLinux(pid) : startedElsewhere(pid);
  return started === undefined ? undefined : { pid, started };
}

/** Whether exactly this process still runs. */
export const isRunning = (identity: ProcessIdentity): boolean =>
  identify(identity.pid)?.started === identity.started;

/** Reads an identity that was kept in a file. @returns undefined when there is none or it cannot be understood. */
export function readIdentity(file: string): ProcessIdentity | undefined {
  try {
    const kept = JSON.parse(readFileSync(file, 'utf8')) as Partial<ProcessIdentity>;
    if (typeof kept.pid !== 'number' || typeof kept.started !== 'string') return undefined;
    return { pid: kept.pid, started: kept.started };
  } catch {
    return undefined;
  }
}
