import { installedPath } from '../config/installation.ts';
import { compileCacheOf } from './compile_cache.ts';
import { LaunchError, type StackEnvironment } from './data_folder.ts';
import {
  type Child,
  type ChildProcesses,
  lastLines,
  type ProgramSpec,
  waitUntilReady,
} from './child_processes.ts';

/** The processes of exportd itself: `exportd server` and `exportd worker`. */
interface ExportdProcesses {
  readonly server: Child;
  readonly worker: Child;
}

interface ExportdOptions {
  /** Node options of the worker, for example to profile it. */
  readonly workerNodeOptions?: readonly string[];
  /** Workflow bundle for the worker and its replacements, which otherwise bundle the workflows at each start. */
  readonly workflowBundle?: string;
  /** Where the worker serves its health and metrics; without it, nowhere. */
  readonly workerHttpPort?: number;
  /** Where the server serves its metrics; without it, nowhere. */
  readonly monitoringPort?: number;
}

const main = installedPath('src/cli/main.ts');

/**
 * Variables that must be set before the process starts. Young generations would grow to 128 MB a thread, and with less than 8 MB
 * what runs hold for a moment would get old. The next two make the C library return memory instead of keeping fragmented heaps per
 * thread: about 100 MB less at a worker's peak. The compile cache saves each start the translation from TypeScript: 15 to 30 MB and
 * a second.
 */
const processSettings = (part: 'server' | 'worker') => ({
  NODE_OPTIONS: '--max-semi-space-size=8',
  MALLOC_ARENA_MAX: '2',
  MALLOC_MMAP_THRESHOLD_: '262144',
  NODE_COMPILE_CACHE: compileCacheOf(part),
});

const program = (
  name: 'server' | 'worker',
  environment: StackEnvironment,
  nodeOptions: readonly string[] = [],
): ProgramSpec => ({
  name,
  command: process.execPath,
  args: [...nodeOptions, main, name],
  env: { ...processSettings(name), ...process.env, ...environment },
  stopSignal: 'SIGTERM',
});

/** Whether this server is ready, and not another one on the same port. */
async function isServerReady(baseUrl: string, { pid }: Child): Promise<boolean> {
  const response = await fetch(`${baseUrl}/readyz?for=act`, { signal: AbortSignal.timeout(5_000) });
  return response.ok && ((await response.json()) as { pid?: number }).pid === pid;
}

/**
 * Starts the server and the worker, and waits until the server reports that it is ready. One that is told to stop meanwhile
 * is started again.
 * @throws LaunchError when one of them exits otherwise, or the server is not ready in time.
 */
export async function startExportd(
  children: ChildProcesses,
  environment: StackEnvironment,
  baseUrl: string,
  { workerNodeOptions, workflowBundle, workerHttpPort, monitoringPort }: ExportdOptions = {},
): Promise<ExportdProcesses> {
  const bundled = workflowBundle === undefined ? {} : { EXPORTD_WORKFLOW_BUNDLE: workflowBundle };
  // Not in the environment that the command line reads: a second server or worker needs a port of its own.
  const monitored = (name: string, port: number | undefined) =>
    port === undefined ? {} : { [name]: String(port) };
  const workerEnvironment = {
    ...bundled,
    ...environment,
    ...monitored('EXPORTD_WORKER_HTTP_PORT', workerHttpPort),
  };
  const serverEnvironment = { ...environment, ...monitored('EXPORTD_MONITORING_PORT', monitoringPort) };
  let worker = children.start(program('worker', workerEnvironment, workerNodeOptions));
  let server = children.start(program('server', serverEnvironment));
  let isReady = false;
  const workerFails = async (): Promise<void> => {
    for (;;) {
      const { how, wasStopped } = await worker.exited;
      // From now on the supervisor handles its exit.
      if (isReady || children.stopping) return;
      if (!wasStopped)
        throw new LaunchError(
          `The worker ${how} before it was ready. Last lines of ${worker.logFile}:\n${lastLines(worker.logFile)}`,
        );
      worker = children.start(worker.program);
    }
  };
  const serverIsReady = async (): Promise<void> => {
    for (;;)
      try {
        await waitUntilReady(server, () => isServerReady(baseUrl, server), 90_000);
        isReady = true;
        return;
      } catch (error) {
        const exit = await Promise.race([server.exited, Promise.resolve(undefined)]);
        if (exit?.wasStopped !== true || children.stopping) throw error;
        server = children.start(server.program);
      }
  };
  await Promise.race([serverIsReady(), workerFails()]);
  return { server, worker };
}
