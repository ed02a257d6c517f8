import type { Client } from '@temporalio/client';
import { readSettings, type Settings } from '../../config/settings.ts';
import { createChildProcesses, lastLines } from '../../local_stack/child_processes.ts';
import { startExportd, type ExportdProcesses } from '../../local_stack/exportd_processes.ts';
import { LaunchError } from '../../local_stack/launch_error.ts';
import type { Report } from '../../local_stack/report.ts';
import type { StackEnvironment } from '../../local_stack/stack_file.ts';
import type { Pool } from '../../journal/database.ts';
import { profilingOptions } from '../exportd_environment.ts';
import type { ScratchStack } from '../scratch_stack.ts';

/** Dependencies of the schedule measurements. */
export interface ScheduleBench {
  readonly stack: ScratchStack;
  readonly pool: Pool;
  readonly client: Client;
  readonly baseUrl: string;
  readonly environment: StackEnvironment;
  /** Whether the server counts statements. */
  readonly countsStatements: boolean;
  /** Folder for the CPU profiles of the workers; none are written without it. */
  readonly profileFolder: string | undefined;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** The settings of exportd's processes. */
export const settingsOf = (environment: StackEnvironment): Settings => readSettings({ ...environment });

/**
 * Runs `work` with a server and a worker that have the given settings.
 * @throws LaunchError when the worker exits
 */
export async function withExportd<Result>(
  {
    stack,
    baseUrl,
    environment,
    profileFolder,
  }: Pick<ScheduleBench, 'stack' | 'baseUrl' | 'environment' | 'profileFolder'>,
  settings: StackEnvironment,
  work: (processes: ExportdProcesses) => Promise<Result>,
): Promise<Result> {
  const children = createChildProcesses(stack.folder);
  const kill = () => children.killAll();
  process.once('exit', kill);
  try {
    const processes = await startExportd(children, { ...environment, ...settings }, baseUrl, {
      workerNodeOptions: profilingOptions(profileFolder),
    });
    const { worker } = processes;
    const ended = worker.exited.then((how) => {
      throw new LaunchError(`The worker ${how}. Last lines of its log:\n${lastLines(worker.logFile)}`);
    });
    ended.catch(() => undefined);
    return await Promise.race([work(processes), ended]);
  } finally {
    await children.stopAll();
    process.off('exit', kill);
  }
}
