import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, renameSync, statfsSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { isBuild, root } from '../config/installation.ts';

/** The stack cannot start. The message tells the user what to do. */
export class LaunchError extends Error {
  override readonly name = 'LaunchError';
}

/** The folder of one stack: the servers' data, its ports and secrets, logs and process ids. */
export interface DataFolder {
  readonly path: string;
  /** Path of a file or folder in it. */
  inside(...names: string[]): string;
}

/** Replaces a file with a rename: readers see the old or the new content, never a part. */
export function writeFileAtomically(file: string, content: string, mode = 0o600): void {
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
 * Creates the folder if it is missing. Only its owner can enter it: databases, objects and logs are in there. Of a root, also the
 * user nobody can, who runs PostgreSQL, but list nothing; each folder in it is its owner's alone.
 * @throws LaunchError when it is not writable or its disk is almost full.
 */
export function openDataFolder(path: string): DataFolder {
  const inside = (...names: string[]) => join(path, ...names);
  try {
    for (const folder of [path, inside('logs'), inside('processes')]) {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      chmodSync(folder, folder === path && process.getuid?.() === 0 ? 0o711 : 0o700);
    }
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
export function asLaunchError(
  error: unknown,
  path: string,
  kind: 'data' | 'cache' = 'data',
): LaunchError | undefined {
  const { code, message } = error as NodeJS.ErrnoException;
  switch (code) {
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
        `The ${kind} folder ${path} is not writable (${message}): change its owner or permissions, or set EXPORTD_${kind.toUpperCase()}_DIR to another folder.`,
      );
    default:
      return undefined;
  }
}

/** A folder in the user's cache, shared by all clones: servers, programs of the tests, or compiled modules. */
export const cacheFolder = (name: 'servers' | 'programs' | 'compiled'): string =>
  join(process.env.EXPORTD_CACHE_DIR ?? join(homedir(), '.cache', 'exportd'), name);

/** Secrets that a stack generates at its first start and keeps. */
export interface Secrets {
  readonly postgresqlPassword: string;
  readonly s3AccessKeyId: string;
  readonly s3SecretAccessKey: string;
  /** Value of EXPORTD_ENCRYPTION_KEYS. */
  readonly encryptionKeys: string;
}

const createSecrets = (): Secrets => ({
  postgresqlPassword: randomBytes(18).toString('base64url'),
  s3AccessKeyId: `EXPORTD${randomBytes(7).toString('hex').toUpperCase().slice(0, 13)}`,
  s3SecretAccessKey: randomBytes(30).toString('base64url'),
  encryptionKeys: `local:${randomBytes(32).toString('base64')}`,
});

/** Reads the secrets of the folder, or creates them in a file that only its owner can read. */
export function loadOrCreateSecrets(folder: DataFolder): Secrets {
  const file = folder.inside('secrets.json');
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Secrets;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  const secrets = createSecrets();
  writeFileAtomically(file, JSON.stringify(secrets, null, 2));
  return secrets;
}

/** Settings of the stack's processes. The CLI reads them to connect to the same servers. */
export type StackEnvironment = Readonly<Record<string, string>>;

const fileName = 'stack.json';

/** Data folder of the local stack: EXPORTD_DATA_DIR, by default `.exportd` in the clone, or in the current folder. */
export const dataFolderPath = (): string =>
  resolve(process.env.EXPORTD_DATA_DIR ?? (isBuild ? '.exportd' : join(root, '.exportd')));

/** Writes the settings to a file that only its owner can read, because they contain secrets. */
export const writeStack = (folder: DataFolder, environment: StackEnvironment): void =>
  writeFileAtomically(folder.inside(fileName), JSON.stringify(environment, null, 2));

/** Settings of the stack that was started last in the folder; undefined when there was none. */
export function readStack(path = dataFolderPath()): StackEnvironment | undefined {
  try {
    return JSON.parse(readFileSync(join(path, fileName), 'utf8')) as StackEnvironment;
  } catch {
    return undefined;
  }
}
