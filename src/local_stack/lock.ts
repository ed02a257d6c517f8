import { execFileSync } from 'node:child_process';
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';

/** Identifies a process, also after its id was reused. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Its start time, in a form that can only be compared. */
  readonly started: string;
}

/** Boot id and clock ticks since the boot, from /proc; undefined for a zombie. */
function startedOnLinux(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${String(pid)}/stat`, 'utf8');
    // The name in parentheses may contain spaces and parentheses: the other fields follow the last one.
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

/** The identity of a running process; undefined when there is none with that id. */
export function identify(pid: number): ProcessIdentity | undefined {
  const started = process.platform === 'linux' ? startedOnLinux(pid) : startedElsewhere(pid);
  return started === undefined ? undefined : { pid, started };
}

/** Whether exactly this process is running. */
export const isRunning = (identity: ProcessIdentity): boolean =>
  identify(identity.pid)?.started === identity.started;

/** Reads an identity from a file; undefined when it is missing or invalid. */
export function readIdentity(file: string): ProcessIdentity | undefined {
  try {
    const saved = JSON.parse(readFileSync(file, 'utf8')) as Partial<ProcessIdentity>;
    if (typeof saved.pid !== 'number' || typeof saved.started !== 'string') return undefined;
    return { pid: saved.pid, started: saved.started };
  } catch {
    return undefined;
  }
}

/** Another running process holds the lock. */
export class LockHeld extends Error {
  override readonly name = 'LockHeld';
  readonly holder: ProcessIdentity;
  constructor(holder: ProcessIdentity) {
    super(`Process ${holder.pid} holds the lock.`);
    this.holder = holder;
  }
}

/**
 * Acquires a lock for this process. A lock whose holder no longer runs is free.
 * @returns Releases the lock.
 * @throws LockHeld
 */
export function acquireLock(file: string): () => void {
  const own = identify(process.pid);
  if (own === undefined) throw new Error('This process is missing in the process table.');
  const draft = `${file}.${String(process.pid)}`;
  writeFileSync(draft, JSON.stringify(own));
  try {
    // A link appears together with its content. A file that is opened and then written could be read while it is empty.
    for (;;) {
      try {
        linkSync(draft, file);
        return () => rmSync(file, { force: true });
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
        const holder = readIdentity(file);
        if (holder !== undefined && isRunning(holder)) throw new LockHeld(holder);
        rmSync(file, { force: true });
      }
    }
  } finally {
    rmSync(draft, { force: true });
  }
}
