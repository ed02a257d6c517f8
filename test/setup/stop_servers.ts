import { rmSync } from 'node:fs';
import { stopRecordedProcesses } from '../../src/local_stack/child_processes.ts';
import { openDataFolder } from '../../src/local_stack/data_folder.ts';

/** Stops the servers of this run of Jest and deletes their data. */
export default async function tearDown(): Promise<void> {
  const path = process.env.EXPORTD_TEST_FOLDER;
  if (path === undefined) return;
  await stopRecordedProcesses(openDataFolder(path));
  rmSync(path, { recursive: true, force: true });
}
