import { createHash } from 'node:crypto';
import { rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { type DataFolder, openDataFolder } from '../../src/local_stack/data_folder.ts';
import { effort } from './effort.ts';

/** Has a folder for each run of Jest, with the data of its servers. */
export const runsFolder = join(import.meta.dirname, '../../.exportd-test');

/** A file system in memory, on Linux. */
const memory = '/dev/shm';

/** Several times what the databases of six test files take. A container often has 64 MB. */
const minMemoryBytes = 4 * 2 ** 30;

const databasesPath = (run: string): string =>
  join(memory, `exportd-test-${createHash('sha256').update(run).digest('hex').slice(0, 16)}`);

function hasMemory(): boolean {
  try {
    const { bavail, bsize } = statfsSync(memory);
    return Math.min(bavail * bsize, process.availableMemory() / 2) >= minMemoryBytes;
  } catch {
    return false;
  }
}

/**
 * The folder for the databases of a run: in memory where there is enough. The run copies and deletes a database of a thousand files
 * for each test file, of which ext4 without a journal made a quarter of the CPU time of PostgreSQL. `npm run test:long` fills more
 * than a memory.
 */
export const openDatabasesFolder = (run: DataFolder): DataFolder =>
  effort === 1 && hasMemory() ? openDataFolder(databasesPath(run.path)) : run;

/** Deletes the databases of a run that are in memory, whose processes may be ending. */
export const deleteDatabases = (run: string): void =>
  rmSync(databasesPath(run), { recursive: true, force: true, maxRetries: 5 });

/** Deletes what a run has left. */
export function deleteRun(run: string): void {
  deleteDatabases(run);
  rmSync(run, { recursive: true, force: true });
}
