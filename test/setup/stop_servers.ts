import { rmSync } from 'node:fs';
import { endRecordedProcesses } from '../../src/local_stack/children.ts';
import { openDataFolder } from '../../src/local_stack/data_folder.ts';

/** Ends the servers of this run of Jest and removes their data. */
export default async function tearDown(): Promise<void> {
  const path = process.env.EXPORTD_TEST_FOLDER;
  if (path === undefined) return;
  await endRecordedProcesses(openDataFolder(path));
  rmSync(path, { recursive: true, force: true });
}
