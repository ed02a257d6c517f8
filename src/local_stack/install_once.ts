import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { asLaunchError } from './data_folder.ts';
import { LockHeld, acquireLock } from './lock.ts';
import type { Report } from './report.ts';
import { isExecutable } from './servers/executable.ts';

/** A program that is installed once per machine. */
export interface Installation {
  /** Its folder, which gets this name only once it is complete. */
  readonly folder: string;
  /** The executable in that folder. */
  readonly program: string;
  /** Name in messages. */
  readonly title: string;
  /** Puts the executable into an empty folder beside the final one. */
  readonly install: (draft: string) => Promise<void>;
}

/** Installs into a new folder that then gets the final name. The caller holds the lock of the final folder. */
async function installIntoDraft({ folder, install }: Installation): Promise<void> {
  // Files of a killed installation, or a folder without its executable.
  for (const name of readdirSync(dirname(folder)))
    if (name === basename(folder) || name.startsWith(`${basename(folder)}.draft-`))
      rmSync(`${dirname(folder)}/${name}`, { recursive: true, force: true });
  const draft = mkdtempSync(`${folder}.draft-`);
  try {
    await install(draft);
    renameSync(draft, folder);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/**
 * Installs a program unless it is there. Concurrent callers, also of other processes, install it once.
 * @returns the path of the executable.
 * @throws LaunchError when it cannot be installed.
 */
export async function installOnce(installation: Installation, report: Report): Promise<string> {
  const { folder, program, title } = installation;
  let isWaiting = false;
  while (!isExecutable(program)) {
    let release: (() => void) | undefined;
    try {
      mkdirSync(dirname(folder), { recursive: true });
      release = acquireLock(`${folder}.lock`);
      if (isExecutable(program)) break;
      await installIntoDraft(installation);
    } catch (error) {
      if (!(error instanceof LockHeld)) throw asLaunchError(error, dirname(folder)) ?? error;
      if (!isWaiting) report(`Waiting for process ${error.holder.pid}, which is installing ${title}`);
      isWaiting = true;
      await delay(500);
    } finally {
      release?.();
    }
  }
  return program;
}
