import { createChildProcesses, lastLines, type Child } from '../../local_stack/child_processes.ts';
import { startExportd, startMoreWorker } from '../../local_stack/exportd_processes.ts';
import { LaunchError } from '../../local_stack/launch_error.ts';
import { assignPorts } from '../../local_stack/ports.ts';
import type { StackEnvironment } from '../../local_stack/stack_file.ts';
import { waitUntilReady } from '../../local_stack/wait_until_ready.ts';
import type { ScratchStack } from '../scratch_stack.ts';

/** A server and several workers. */
export interface Fleet {
  readonly baseUrl: string;
  readonly environment: StackEnvironment;
  /** File with the bundled workflows, which would cost each worker seconds. */
  readonly workflowBundle: string;
}

/**
 * Runs `work` with a server and so many workers, once Temporal gives tasks to each of them. Stops them afterwards.
 * @throws LaunchError when a worker exits
 */
export async function withWorkers<Result>(
  { folder }: Pick<ScratchStack, 'folder'>,
  { baseUrl, environment, workflowBundle }: Fleet,
  count: number,
  work: (workerPids: readonly number[]) => Promise<Result>,
): Promise<Result> {
  const children = createChildProcesses(folder);
  const kill = () => children.killAll();
  process.once('exit', kill);
  try {
    const numbers = Array.from({ length: count }, (_, index) => index + 1);
    const nameOf = (number: number) => `worker-${String(number)}`;
    const ports = await assignPorts(folder.inside('ports.json'), numbers.map(nameOf));
    const portOf = (number: number) => ports[nameOf(number)] ?? 0;
    const { worker: first } = await startExportd(children, environment, baseUrl, {
      workflowBundle,
      workerHttpPort: portOf(1),
    });
    const more = numbers.slice(1).map((number) =>
      startMoreWorker(
        children,
        {
          ...environment,
          EXPORTD_WORKFLOW_BUNDLE: workflowBundle,
          EXPORTD_WORKER_HTTP_PORT: String(portOf(number)),
        },
        number,
      ),
    );
    const workers = [first, ...more];
    await Promise.all(
      workers.map((worker, index) => waitUntilReady(worker, () => isReady(portOf(index + 1), worker))),
    );
    const ended = workers.map(({ exited, logFile }) =>
      exited.then((how) => {
        throw new LaunchError(`A worker ${how}. Last lines of its log:\n${lastLines(logFile)}`);
      }),
    );
    for (const one of ended) one.catch(() => undefined);
    return await Promise.race([work(workers.map(({ pid }) => pid)), ...ended]);
  } finally {
    await children.stopAll();
    process.off('exit', kill);
  }
}

/** Whether this worker polls its task queues, and not another process on the port. */
async function isReady(port: number, { pid }: Child): Promise<boolean> {
  const response = await fetch(`http://127.0.0.1:${String(port)}/readyz`, {
    signal: AbortSignal.timeout(5_000),
  });
  return response.ok && ((await response.json()) as { pid?: number }).pid === pid;
}
