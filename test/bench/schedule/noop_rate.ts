import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Client } from '@temporalio/client';
import { forEachConcurrently } from '../../../src/concurrency/keyed_semaphore.ts';
import type { Settings } from '../../../src/config/settings.ts';
import { withWorkers } from '../exportd.ts';
import { rounded } from '../results.ts';
import type { Scratch } from '../scratch.ts';
import type { NoopInput, noopWorkflow } from './noop_workflow.ts';

/** No-op workflows: each schedules one activity, which does nothing, and ends. */
export interface NoopResult {
  readonly workflows: number;
  /** Maximum number of concurrent workflows. */
  readonly concurrency: number;
  readonly seconds: number;
  readonly per_second: number;
}

/** The concurrency of no-op workflows that saturates a worker. */
export const maxConcurrency = 20;

const program = join(import.meta.dirname, 'noop_worker_program.ts');
/** Workflows that are not timed, for connections and compilation. */
const warmUp = { workflows: 50, concurrency: 10 };

/**
 * Measures how many no-op workflows complete per second on a new worker, for each concurrency.
 * @throws LaunchError when the worker exits. @throws the reason of an aborted signal
 */
export async function measureNoopRate(
  { stack, signal }: Scratch,
  client: Client,
  settings: Pick<Settings, 'EXPORTD_EXPORT_SLOTS' | 'EXPORTD_TASK_QUEUE_PREFIX'>,
  workflows: number,
  concurrencies: readonly number[],
): Promise<NoopResult[]> {
  const prefix = `${settings.EXPORTD_TASK_QUEUE_PREFIX}-noop`;
  // Separate task queues for workflows and activities, like those of exportd.
  const queues = [`${prefix}-workflows`, `${prefix}-activities`] as const;
  const [taskQueue, activity_task_queue] = queues;
  const { address, namespace } = stack.temporal;
  const slots = String(settings.EXPORTD_EXPORT_SLOTS);
  const codePath = stack.folder.inside('noop_workflow.js');
  const input: NoopInput = { activity_task_queue };
  const run = (count: number, concurrency: number) =>
    forEachConcurrently(Array.from({ length: count }), concurrency, async () => {
      signal.throwIfAborted();
      const workflowId = `${prefix}-${randomUUID()}`;
      await client.workflow.execute<typeof noopWorkflow>('noopWorkflow', {
        workflowId,
        taskQueue,
        args: [input],
      });
    });
  return withWorkers(
    stack,
    (children) => [
      children.start({
        name: 'worker',
        command: process.execPath,
        args: [program, address, namespace, ...queues, slots, codePath],
        env: process.env,
        stopSignal: 'SIGTERM',
      }),
    ],
    async () => {
      await run(warmUp.workflows, warmUp.concurrency);
      const results: NoopResult[] = [];
      for (const concurrency of concurrencies) {
        const startedAt = performance.now();
        await run(workflows, concurrency);
        const seconds = (performance.now() - startedAt) / 1_000;
        const per_second = rounded(workflows / seconds);
        results.push({ workflows, concurrency, seconds: rounded(seconds), per_second });
      }
      return results;
    },
  );
}
