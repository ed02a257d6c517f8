import { createChildProcesses, lastLines } from '../local_stack/child_processes.ts';
import { createApiClient } from '../local_stack/demo/api_client.ts';
import { startExportd } from '../local_stack/exportd_processes.ts';
import { LaunchError } from '../local_stack/launch_error.ts';
import { assignPorts } from '../local_stack/ports.ts';
import type { Pool } from '../journal/database.ts';
import type { BenchAccount } from './bench_account.ts';
import { exportdEnvironment, profilingOptions } from './exportd_environment.ts';
import { exportOnce, type ExportRequest, type MeasuredRun } from './measured_export.ts';
import type { ScratchStack } from './scratch_stack.ts';

/** The run to measure. */
export interface RunRequest extends ExportRequest {
  readonly account: BenchAccount;
  /** Whether the worker exports the interval once before, which excludes its start-up from the measurement. */
  readonly warm: boolean;
  /** Folder for the CPU profiles of the worker; none are written without it. */
  readonly profileFolder?: string | undefined;
}

/**
 * Starts a server and a worker, exports the interval with a backfill, and stops them. Every measurement has a new worker,
 * unaffected by the memory and caches of other formats.
 * @throws LaunchError when the run does not complete, or its objects differ from the source
 */
export async function measureRun(
  stack: ScratchStack,
  pool: Pool,
  request: RunRequest,
  signal: AbortSignal,
): Promise<MeasuredRun> {
  const { folder } = stack;
  const { baseUrl, environment } = await exportdEnvironment(stack, request.format);
  const { worker: workerHttpPort } = await assignPorts(folder.inside('ports.json'), ['worker']);
  const children = createChildProcesses(folder);
  const kill = () => children.killAll();
  process.once('exit', kill);
  try {
    const { worker } = await startExportd(children, environment, baseUrl, {
      workerNodeOptions: profilingOptions(request.profileFolder),
      workerHttpPort,
    });
    const { teamId, apiKey } = request.account;
    const client = createApiClient(baseUrl, teamId, apiKey);
    const session = { stack, pool, client, environment, workerPid: worker.pid, workerHttpPort, signal };
    const ended = worker.exited.then((how) => {
      throw new LaunchError(`The worker ${how}. Last lines of its log:\n${lastLines(worker.logFile)}`);
    });
    ended.catch(() => undefined);
    if (request.warm) {
      await Promise.race([exportOnce(session, { ...request, verify: undefined }), ended]);
      await stack.emptyBucket();
    }
    return await Promise.race([exportOnce(session, request), ended]);
  } finally {
    await children.stopAll();
    process.off('exit', kill);
  }
}
