import { mkdirSync, renameSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LaunchError } from './launch_error.ts';

/** The folder of one stack: the servers' data, its ports and secrets, logs and process ids. */
export interface DataFolder {
  readonly path: string;
  /** Path of a file or folder in it. */
  inside(...names: string[]): string;
}

/** Replaces a file with a rename: readers see the old or the new content, never a part. */
export function writeFileAtomically(file: string, content: string, mode = 0o644): void {
  const draft = `${file}.${String(process.pid)}.new`;
  writeFileSync(draft, content, { mode });
  renameSync(draft, file);
}

/** Space for the demo data and the servers' write-ahead logs. */
const minFreeBytes = 512 * 1024 * 1024;

const diskFull = (path: string): LaunchError =>
  new LaunchError(
    `The disk of ${path} is full: free about 1 GB, or set EXPORTD_DATA_DIR to a folder on another disk.`,
  );

/** The error for a full disk if the output of a program reports one, otherwise undefined. */
export const asDiskFull = (output: string, path: string): LaunchError | undefined =>
  /no space left on device|disk is full|ENOSPC/i.test(output) ? diskFull(path) : undefined;

/**
 * Creates the folder if it is missing.
 * @throws LaunchError when it is not writable or its disk is almost full.
 */
export function openDataFolder(path: string): DataFolder {
  const inside = (...names: string[]) => join(path, ...names);
  try {
    for (const name of ['logs', 'processes']) mkdirSync(inside(name), { recursive: true });
    writeFileAtomically(inside('.writable'), '');
  } catch (error) {
    throw asLaunchError(error, path) ?? error;
  }
  // Checked here for a clear message: later, any of the servers would fail in its own way.
  const { bavail, bsize } = statfsSync(path);
  if (bavail * bsize < minFreeBytes) throw diskFull(path);
  return { path, inside };
}

/** The message for a file system error that the user can fix; undefined for any other error. */
export function asLaunchError(error: unknown, path: string): LaunchError | undefined {
  switch ((error as NodeJS.ErrnoException).code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return diskFull(path);
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
    case 'ENOTDIR':
    case 'EEXIST':
    case 'ENOENT':
      return new LaunchError(
        `The data folder ${path} is not writable: change its owner or permissions, or set EXPORTD_DATA_DIR to another folder.`,
      );
    default:
      return undefined;
  }
}
