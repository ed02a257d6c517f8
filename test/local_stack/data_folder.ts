import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from '@jest/globals';
import { openDataFolder, type DataFolder } from '../../src/local_stack/data_folder.ts';

/** An empty data folder, deleted after the tests of the file. */
export function temporaryFolder(): DataFolder {
  const path = mkdtempSync(join(tmpdir(), 'exportd-local-stack-'));
  afterAll(() => rmSync(path, { recursive: true, force: true }));
  return openDataFolder(path);
}
