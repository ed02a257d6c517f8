import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { writeFileAtomically, type DataFolder } from './data_folder.ts';

/** Settings that the stack's processes run with; the command line reads them to speak to the same servers. */
export type StackEnvironment = Readonly<Record<string, string>>;

const fileName = 'stack.json';

/** The folder of this clone's stack. */
export const dataFolderPath = (): string =>
  resolve(process.env.EXPORTD_DATA_DIR ?? join(import.meta.dirname, '../../.exportd'));

/** Keeps the settings where only the owner may read them, for they hold secrets. */
export const writeStack = (folder: DataFolder, environment: StackEnvironment): void =>
  writeFileAtomically(folder.inside(fileName), JSON.stringify(environment, null, 2), 0o600);

/** Settings of the stack that was started from this clone last; undefined when there was none. */
export function readStack(path = dataFolderPath()): StackEnvironment | undefined {
  try {
    return JSON.parse(readFileSync(join(path, fileName), 'utf8')) as StackEnvironment;
  } catch {
    return undefined;
  }
}
