import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ApplicationFailure } from '@temporalio/common';
import type { CompiledWorkerOptions } from '@temporalio/worker';
import { connectWorkers } from '../../../src/temporal/connections.ts';
import { bundleWorkflows } from '../../../src/temporal/worker/bundle.ts';
import type { WorkflowThreadOptions } from '../../../src/temporal/worker/workflow_messages.ts';
import { WorkflowWorker } from '../../../src/temporal/worker/workflow_worker.ts';
import { sharedBundle } from '../../setup/shared_bundle.ts';
import { waitFor } from '../../setup/wait_for.ts';
import { type ControlPlaneHarness, createControlPlaneHarness } from '../control_plane_harness.ts';
import type * as workflows from './thread_workflows.ts';

/** The SDK has an option for the time of an activation, which its types hide. */
class ImpatientWorker extends WorkflowWorker {
  protected static override createWorkflowCreator(
    bundle: WorkflowThreadOptions['bundle'],
    options: CompiledWorkerOptions,
  ) {
    return super.createWorkflowCreator(bundle, { ...options, isolateExecutionTimeoutMs: 300 });
  }
}

const workflowsPath = join(import.meta.dirname, 'thread_workflows.ts');
const file = 'test/temporal/worker/thread_workflows.ts';
/** The line of a text in them. */
const lineOf = (text: string): number =>
  readFileSync(workflowsPath, 'utf8')
    .split('\n')
    .findIndex((line) => line.includes(text)) + 1;
const taskQueue = `test-${randomUUID()}`;

let stack: ControlPlaneHarness;
let connection: Awaited<ReturnType<typeof connectWorkers>>;
let worker: Awaited<ReturnType<typeof WorkflowWorker.create>>;
let running: Promise<void>;
beforeAll(async () => {
  stack = await createControlPlaneHarness();
  connection = await connectWorkers(stack.settings);
  worker = await ImpatientWorker.create({
    connection,
    taskQueue,
    workflowBundle: await bundleWorkflows(workflowsPath),
  });
  running = worker.run();
});
afterAll(async () => {
  worker.shutdown();
  await running;
  await connection.close();
  await stack.close();
});

const start = (name: keyof typeof workflows) =>
  stack.client.workflow.start(name, { workflowId: `${name}-${randomUUID()}`, taskQueue });

describe('the thread of workflows', () => {
  it('follows no promises, and says where an execution waits to who asks for its stack', async () => {
    await expect((await start('followsPromises')).result()).resolves.toBe(false);
    const waiting = await start('waits');
    await expect(waiting.query('answer')).resolves.toBe('answered');
    const stackTrace = () => waiting.query<string>('__stack_trace');
    await waitFor(async () => (await stackTrace()).includes('waitBelow'), 'the second wait');
    expect((await stackTrace()).split('\n')).toEqual([
      `    at waitBelow (${file}:${lineOf("sleep('1 day')")}:0)`,
      `    at waits (${file}:${lineOf('await waitBelow()')}:0)`,
    ]);
    await waiting.terminate();
  });

  it('gives a failure the lines of its source, from where it was thrown up to the workflow', async () => {
    const failed = (await start('fails')).result();
    await expect(failed).rejects.toMatchObject({ cause: { type: 'Expected' } });
    const { cause } = (await failed.catch((error: unknown) => error)) as { cause: ApplicationFailure };
    expect(cause.stack?.split('\n')).toEqual([
      'ApplicationFailure: It failed.',
      expect.stringMatching(
        /^ {4}at .*nonRetryable \(node_modules\/@temporalio\/common\/src\/failure\.ts:1:0\)$/,
      ),
      `    at failBelow (${file}:${lineOf("nonRetryable('It failed.'")}:0)`,
    ]);
  });

  it('interrupts an activation that computes for too long, and goes on with others', async () => {
    const endless = await start('neverYields');
    await waitFor(async () => {
      const { events } = await endless.fetchHistory();
      return events?.some(({ workflowTaskFailedEventAttributes: failed }) =>
        failed?.failure?.message?.includes('timed out after 300ms'),
      );
    }, 'the failure of its task');
    await expect((await start('followsPromises')).result()).resolves.toBe(false);
    await endless.terminate();
  });
});

describe('the bundle of workflows', () => {
  it('is small, since each worker keeps it in memory', () => {
    expect(sharedBundle().code.length).toBeLessThan(600_000);
  });
});
