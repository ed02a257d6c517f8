import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Client } from '@temporalio/client';
import type { Settings } from '../../config/settings.ts';
import { createChildProcesses, lastLines } from '../../local_stack/child_processes.ts';
import { LaunchError } from '../../local_stack/launch_error.ts';
import { forEachConcurrently } from '../../temporal/concurrency.ts';
import { rounded } from '../statistics.ts';
import type { ScratchStack } from '../scratch_stack.ts';
import { noopQueues } from './noop_queues.ts';
import type { NoopInput, noopWorkflow } from './noop_workflow.ts';
import type { NoopResult } from './result.ts';
import { watchUsage } from './stack_usage.ts';

const program = join(import.meta.dirname, 'noop_worker_program.ts');
/** Workflows that are not timed, for connections and compilation. */
const warmUp = 50;

/**
 * Measures how many no-op workflows complete per second on a new worker, for each concurrency.
 * @throws LaunchError when the worker exits. @throws the reason of an aborted signal
 */
export async function measureNoopRate(
  stack: ScratchStack,
  client: Client,
  settings: Pick<Settings, 'EXPORTD_EXPORT_SLOTS' | 'EXPORTD_TASK_QUEUE_PREFIX'>,
  request: { readonly workflows: number; readonly concurrencies: readonly number[] },
  signal: AbortSignal,
): Promise<NoopResult[]> {
  const prefix = `${settings.EXPORTD_TASK_QUEUE_PREFIX}-noop`;
  const { address, namespace } = stack.temporal;
  const slots = String(settings.EXPORTD_EXPORT_SLOTS);
  const children = createChildProcesses(stack.folder);
  const kill = () => children.killAll();
  process.once('exit', kill);
  try {
    const worker = children.start({
      name: 'worker',
      command: process.execPath,
      args: [program, address, namespace, prefix, slots, stack.folder.inside('noop_workflow.js')],
      env: process.env,
      stopSignal: 'SIGTERM',
    });
    const ended = worker.exited.then((how) => {
      throw new LaunchError(`The worker of the no-op workflows ${how}: ${lastLines(worker.logFile)}`);
    });
    ended.catch(() => undefined);
    const measure = async () => {
      await runMany(client, prefix, warmUp, 10, signal);
      const results: NoopResult[] = [];
      for (const concurrency of request.concurrencies) {
        const usage = watchUsage(stack);
        const startedAt = performance.now();
        await runMany(client, prefix, request.workflows, concurrency, signal);
        const seconds = (performance.now() - startedAt) / 1_000;
        results.push({
          workflows: request.workflows,
          concurrency,
          seconds: rounded(seconds),
          per_second: rounded(request.workflows / seconds),
          usage: await usage.end(),
        });
      }
      return results;
    };
    return await Promise.race([measure(), ended]);
  } finally {
    await children.stopAll();
    process.off('exit', kill);
  }
}

async function runMany(
  client: Client,
  prefix: string,
  count: number,
  concurrencies: number,
  signal: AbortSignal,
): Promise<void> {
  const queues = noopQueues(prefix);
  const input: NoopInput = { activity_task_queue: queues.activities };
  await forEachConcurrently(Array.from({ length: count }), concurrencies, async () => {
    signal.throwIfAborted();
    await client.workflow.execute<typeof noopWorkflow>('noopWorkflow', {
      workflowId: `${prefix}-${randomUUID()}`,
      taskQueue: queues.workflows,
      args: [input],
    });
  });
}
