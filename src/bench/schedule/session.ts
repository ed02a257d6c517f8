import type { Client } from '@temporalio/client';
import { readSettings, type Settings } from '../../config/settings.ts';
import { createChildren, lastLines } from '../../local_stack/children.ts';
import { startExportd } from '../../local_stack/exportd_processes.ts';
import { LaunchError } from '../../local_stack/launch_error.ts';
import type { Report } from '../../local_stack/report.ts';
import type { StackEnvironment } from '../../local_stack/stack_file.ts';
import type { Pool } from '../../journal/database.ts';
import { profilingOptions } from '../exportd_environment.ts';
import type { ScratchStack } from '../scratch_stack.ts';

/** What all measurements of schedules work with. */
export interface ScheduleBench {
  readonly stack: ScratchStack;
  readonly pool: Pool;
  readonly client: Client;
  readonly baseUrl: string;
  readonly environment: StackEnvironment;
  /** Whether the server counts statements. */
  readonly countsStatements: boolean;
  /** Where the CPU profiles of the workers are kept; none are made without it. */
  readonly profileFolder: string | undefined;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** The settings of exportd's processes. */
export const settingsOf = (environment: StackEnvironment): Settings => readSettings({ ...environment });

/**
 * Starts server and worker with some settings, does the work, and stops them.
 * @throws LaunchError when the worker ends meanwhile
 */
export async function withExportd<Result>(
  { stack, baseUrl, environment, profileFolder }: ScheduleBench,
  settings: StackEnvironment,
  work: () => Promise<Result>,
): Promise<Result> {
  const children = createChildren(stack.folder);
  const kill = () => children.killAll();
  process.once('exit', kill);
  try {
    const { worker } = await startExportd(children, { ...environment, ...settings }, baseUrl, {
      workerNodeOptions: profilingOptions(profileFolder),
    });
    const ended = worker.exited.then((how) => {
      throw new LaunchError(`The worker ${how}. The end of its log:\n${lastLines(worker.logFile)}`);
    });
    ended.catch(() => undefined);
    return await Promise.race([work(), ended]);
  } finally {
    await children.stopAll();
    process.off('exit', kill);
  }
}
