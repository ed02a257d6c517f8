import { linkSync, rmSync, writeFileSync } from 'node:fs';
import { identify, isRunning, readIdentity, type ProcessIdentity } from './process_identity.ts';

/** The lock is held by another process that still runs. */
export class LockHeld extends Error {
  override readonly name = 'LockHeld';
  readonly holder: ProcessIdentity;
  constructor(holder: ProcessIdentity) {
    super(`The lock is held by process ${holder.pid}.`);
    this.holder = holder;
  }
}

/**
 * Takes a lock for this process. A lock whose holder has ended, however it ended, counts as free.
 * @returns releases the lock.
 * @throws LockHeld
 */
export function takeLock(file: string): () => void {
  const own = identify(process.pid);
  if (own === undefined) throw new Error('This process cannot be found in the process table.');
  const draft = `${file}.${String(process.pid)}`;
  writeFileSync(draft, JSON.stringify(own));
  try {
    // A link appears with its content at once; a file that is opened and then written could be read empty.
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
