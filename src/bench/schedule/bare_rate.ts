import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Client } from '@temporalio/client';
import type { Settings } from '../../config/settings.ts';
import { createChildren, lastLines } from '../../local_stack/children.ts';
import { LaunchError } from '../../local_stack/launch_error.ts';
import { forEachConcurrently } from '../../temporal/concurrency.ts';
import { rounded } from '../figures.ts';
import type { ScratchStack } from '../scratch_stack.ts';
import { bareQueues } from './bare_queues.ts';
import type { BareInput, bareWorkflow } from './bare_workflow.ts';
import type { BareResult } from './document.ts';
import { watchUse } from './stack_use.ts';

const program = join(import.meta.dirname, 'bare_worker_program.ts');
/** Workflows that are not timed: the first ones connect and compile. */
const warmUp = 50;

/**
 * How many bare workflows end in a second, by a worker that is started for it, for each number of them at once.
 * @throws LaunchError when the worker ends; the signal's reason when it is aborted
 */
export async function measureBareRate(
  stack: ScratchStack,
  client: Client,
  settings: Pick<Settings, 'EXPORTD_EXPORT_SLOTS' | 'EXPORTD_TASK_QUEUE_PREFIX'>,
  order: { readonly workflows: number; readonly atOnce: readonly number[] },
  signal: AbortSignal,
): Promise<BareResult[]> {
  const prefix = `${settings.EXPORTD_TASK_QUEUE_PREFIX}-bare`;
  const { address, namespace } = stack.temporal;
  const slots = String(settings.EXPORTD_EXPORT_SLOTS);
  const children = createChildren(stack.folder);
  const kill = () => children.killAll();
  process.once('exit', kill);
  try {
    const worker = children.start({
      name: 'worker',
      command: process.execPath,
      args: [program, address, namespace, prefix, slots, stack.folder.inside('bare_workflow.js')],
      env: process.env,
      stopSignal: 'SIGTERM',
    });
    const ended = worker.exited.then((how) => {
      throw new LaunchError(`The worker of the bare workflows ${how}: ${lastLines(worker.logFile)}`);
    });
    ended.catch(() => undefined);
    const measure = async () => {
      await runMany(client, prefix, warmUp, 10, signal);
      const results: BareResult[] = [];
      for (const at_once of order.atOnce) {
        const use = watchUse(stack);
        const began = performance.now();
        await runMany(client, prefix, order.workflows, at_once, signal);
        const seconds = (performance.now() - began) / 1_000;
        results.push({
          workflows: order.workflows,
          at_once,
          seconds: rounded(seconds),
          per_second: rounded(order.workflows / seconds),
          use: await use.end(),
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
  atOnce: number,
  signal: AbortSignal,
): Promise<void> {
  const queues = bareQueues(prefix);
  const input: BareInput = { activity_task_queue: queues.activities };
  await forEachConcurrently(Array.from({ length: count }), atOnce, async () => {
    signal.throwIfAborted();
    await client.workflow.execute<typeof bareWorkflow>('bareWorkflow', {
      workflowId: `${prefix}-${randomUUID()}`,
      taskQueue: queues.workflows,
      args: [input],
    });
  });
}
