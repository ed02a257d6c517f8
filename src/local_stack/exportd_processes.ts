import { join } from 'node:path';
import { cacheFolder } from './cache_folder.ts';
import type { Child, Children, Program } from './children.ts';
import { LaunchError } from './launch_error.ts';
import { lastLines } from './children.ts';
import { untilReady } from './ready.ts';
import type { StackEnvironment } from './stack_file.ts';

/** exportd's own processes, as anybody could start them by hand. */
export interface ExportdProcesses {
  readonly server: Child;
  readonly worker: Child;
}

export interface ExportdOptions {
  /** Options of Node for the worker, e.g. to profile it. */
  readonly workerNodeOptions?: readonly string[];
  /** A file with the workflows, so that the worker need not bundle them, nor one that takes its place. */
  readonly workflowBundle?: string;
}

const main = join(import.meta.dirname, '../cli/main.ts');

/**
 * What a process cannot set for itself. The C library gives memory back (by itself it keeps heaps for every thread, with
 * blocks of many sizes in them): about 100 MB less at a worker's peak. Compiled programs are kept, which saves a start
 * the translation from TypeScript: 15 to 30 MB and a second.
 */
const processSettings = () => ({
  MALLOC_ARENA_MAX: '2',
  MALLOC_MMAP_THRESHOLD_: '262144',
  NODE_COMPILE_CACHE: cacheFolder('compiled'),
});

const program = (
  name: 'server' | 'worker',
  environment: StackEnvironment,
  nodeOptions: readonly string[] = [],
): Program => ({
  name,
  command: process.execPath,
  args: [...nodeOptions, main, name],
  env: { ...processSettings(), ...process.env, ...environment },
  stopSignal: 'SIGTERM',
});

/** Whether this server is ready, and not another one that took its port. */
async function answersReady(baseUrl: string, { pid }: Child): Promise<boolean> {
  const answer = await fetch(`${baseUrl}/readyz`, { signal: AbortSignal.timeout(5_000) });
  return answer.ok && ((await answer.json()) as { pid?: number }).pid === pid;
}

/**
 * Starts server and worker and waits until the server says that all work.
 * @throws LaunchError when one of them ends, or they are not ready in time.
 */
export async function startExportd(
  children: Children,
  environment: StackEnvironment,
  baseUrl: string,
  { workerNodeOptions, workflowBundle }: ExportdOptions = {},
): Promise<ExportdProcesses> {
  const bundled = workflowBundle === undefined ? {} : { EXPORTD_WORKFLOW_BUNDLE: workflowBundle };
  const worker = children.start(program('worker', { ...bundled, ...environment }, workerNodeOptions));
  const server = children.start(program('server', environment));
  const workerEnds = worker.exited.then((how) => {
    throw new LaunchError(
      `The worker ${how} before it was ready. The end of ${worker.logFile}:\n${lastLines(worker.logFile)}`,
    );
  });
  await Promise.race([untilReady(server, () => answersReady(baseUrl, server), 90_000), workerEnds]);
  // Once ready, the supervisor sees to its end.
  workerEnds.catch(() => undefined);
  return { server, worker };
}
