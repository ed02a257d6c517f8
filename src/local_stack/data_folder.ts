import { mkdirSync, renameSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LaunchError } from './launch_error.ts';

/** Where one stack keeps everything: the servers' data, what it chose (ports, secrets), logs and process ids. */
export interface DataFolder {
  readonly path: string;
  /** The path of something inside. */
  inside(...names: string[]): string;
}

/** Replaces a file in one step, so that nobody reads half of it. */
export function writeFileAtomically(file: string, content: string, mode = 0o644): void {
  const draft = `${file}.${String(process.pid)}.new`;
  writeFileSync(draft, content, { mode });
  renameSync(draft, file);
}

/** The demo's data and the servers' logs of what they write. */
const leastFreeBytes = 512 * 1024 * 1024;

const diskFull = (path: string): LaunchError =>
  new LaunchError(
    `The disk that holds ${path} is full: free about 1 GB, or set EXPORTD_DATA_DIR to a folder on another disk.`,
  );

/** Whether what a program printed says that the disk is full; then the sentence for it. */
export const asDiskFull = (output: string, path: string): LaunchError | undefined =>
  /no space left on device|disk is full|ENOSPC/i.test(output) ? diskFull(path) : undefined;

/**
 * Makes the folder where it is missing, and proves that it can be written.
 * @throws LaunchError when it cannot.
 */
export function openDataFolder(path: string): DataFolder {
  const inside = (...names: string[]) => join(path, ...names);
  try {
    for (const name of ['logs', 'processes']) mkdirSync(inside(name), { recursive: true });
    writeFileAtomically(inside('.writable'), '');
  } catch (error) {
    throw asLaunchError(error, path) ?? error;
  }
  // Here it can be said in a sentence; later it would be the odd failure of one server or another.
  const { bavail, bsize } = statfsSync(path);
  if (bavail * bsize < leastFreeBytes) throw diskFull(path);
  return { path, inside };
}

/** Puts an error of the file system that a person can cure into a sentence; undefined for any other error. */
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
        `The data folder ${path} cannot be written: change its owner or rights, or set EXPORTD_DATA_DIR to another folder.`,
      );
    default:
      return undefined;
  }
}
