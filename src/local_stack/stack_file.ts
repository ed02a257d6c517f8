import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { writeFileAtomically, type DataFolder } from './data_folder.ts';

/** Settings of the stack's processes. The CLI reads them to connect to the same servers. */
export type StackEnvironment = Readonly<Record<string, string>>;

const fileName = 'stack.json';

/** Data folder of the local stack: EXPORTD_DATA_DIR, by default `.exportd` in the clone. */
export const dataFolderPath = (): string =>
  resolve(process.env.EXPORTD_DATA_DIR ?? join(import.meta.dirname, '../../.exportd'));

/** Writes the settings to a file that only its owner can read, because they contain secrets. */
export const writeStack = (folder: DataFolder, environment: StackEnvironment): void =>
  writeFileAtomically(folder.inside(fileName), JSON.stringify(environment, null, 2), 0o600);

/** Settings of the stack that was started last in the folder; undefined when there was none. */
export function readStack(path = dataFolderPath()): StackEnvironment | undefined {
  try {
    return JSON.parse(readFileSync(join(path, fileName), 'utf8')) as StackEnvironment;
  } catch {
    return undefined;
  }
}
