import { stopRecordedProcesses } from '../../src/local_stack/child_processes.ts';
import { openDataFolder } from '../../src/local_stack/data_folder.ts';
import { endProcessesOf } from './left_processes.ts';
import { deleteRun } from './run_folder.ts';

/** Stops the servers of this run of Jest and deletes their data. Fails the run if a test has left a process. */
export default async function tearDown(): Promise<void> {
  const path = process.env.EXPORTD_TEST_FOLDER;
  if (path === undefined) return;
  const left = await endProcessesOf(path);
  await stopRecordedProcesses(openDataFolder(path));
  deleteRun(path);
  if (left.length === 0) return;
  // Not an error, with which Jest writes no results.
  process.exitCode = 1;
  const lines = left.map(({ pid, command }) => `  ${String(pid)}  ${command}\n`);
  process.stderr.write(`Tests have left processes, which were ended:\n${lines.join('')}`);
}
