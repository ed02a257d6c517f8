import { linkSync, rmSync, writeFileSync } from 'node:fs';
import { identify, isRunning, readIdentity, type ProcessIdentity } from './process_identity.ts';

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
