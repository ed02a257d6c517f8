import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Context } from '@temporalio/activity';
import { randomUUID } from 'node:crypto';
import { runWorkflowId } from '../../../src/contract/workflow_ids.ts';
import { workflowTypes } from '../../../src/contract/workflow_types.ts';
import { continueRun } from '../../../src/decisions/continue_run.ts';
import { endRun } from '../../../src/decisions/run_outcomes.ts';
import { readStartableRun } from '../../../src/decisions/startable_runs.ts';
import { readCommand } from '../../../src/journal/commands.ts';
import { createLogger } from '../../../src/telemetry/logger.ts';
import { createReconcileLoop } from '../../../src/temporal/reconcilers/reconcile_loop.ts';
import { runInput } from '../../../src/temporal/clients/run_limits.ts';
import { taskQueues } from '../../../src/temporal/task_queues.ts';
import { createLaggingExport } from '../../decisions/lagging_export.ts';
import { waitFor } from '../../setup/wait_for.ts';
import {
  createControlStack,
  lastHours,
  type Behaviour,
  type ControlStack,
} from '../control_plane_harness.ts';

let stack: ControlStack;
let usual: Behaviour;
beforeAll(async () => {
  stack = await createControlStack({
    EXPORTD_RUN_RETRY_INITIAL: '100ms',
    EXPORTD_MAX_CONCURRENT_RUNS: '1',
    EXPORTD_RECONCILE_INTERVAL: '100ms',
  });
  usual = { ...stack.behaviour };
  await stack.startWorker();
});
beforeEach(() => {
  Object.assign(stack.behaviour, usual);
});
afterAll(() => stack.close());

const untilCancelled = async (): Promise<void> => {
  const context = Context.current();
  const timer = setInterval(() => context.heartbeat(), 100);
  await context.cancelled.finally(() => clearInterval(timer));
};

async function runningRun() {
  stack.behaviour.whileExporting = untilCancelled;
  const id = await stack.createExport();
  await stack.command(id, 'backfill', lastHours(1));
  return { id, run: await stack.runIn(id, 'Running') };
}

describe('the reconciler', () => {
  it('starts a schedule and a backfill again that were terminated by hand', async () => {
    const id = await stack.createExport();
    stack.behaviour.whileExporting = untilCancelled;
    const { outcome } = await stack.command(id, 'backfill', lastHours(1));
    const names = [`batch-export-${id}`, `batch-export-backfill-${outcome?.backfill_id ?? ''}`];
    for (const name of names)
      await waitFor(
        () =>
          stack.client.workflow
            .getHandle(name)
            .terminate('by hand')
            .then(
              () => true,
              () => false,
            ),
        name,
      );
    await stack.reconcile();
    for (const name of names)
      expect((await stack.client.workflow.getHandle(name).describe()).status.name).toBe('RUNNING');
  });

  it('records a run that was terminated by hand, and does not repeat it', async () => {
    const { id, run } = await runningRun();
    await stack.client.workflow.getHandle(runWorkflowId(run)).terminate('by hand');
    await stack.reconcile();
    expect(await stack.runIn(id, 'Terminated')).toMatchObject({ id: run.id });
    expect(await stack.runsOf(id)).toHaveLength(1);
  });

  it('records a run that timed out, and its retry follows', async () => {
    stack.behaviour.checkBarrier = () =>
      Promise.resolve({ state: { phase: 'transactions', blockers: ['3/4'] }, wait_ms: 500, blocked_by: [] });
    const id = await stack.createExport();
    await stack.command(id, 'backfill', lastHours(1));
    const run = await stack.runIn(id, 'Starting');
    const startable = await readStartableRun(stack.pool, run.id);
    if (!startable) throw new Error('The run is gone.');
    // The same, but for how long it may take: every other run of this file may take as long as a busy machine needs.
    await stack.client.workflow.start(workflowTypes.run, {
      workflowId: runWorkflowId(run),
      taskQueue: taskQueues(stack.settings).control,
      args: [runInput(startable, stack.settings)],
      memo: { run_id: run.id },
      workflowExecutionTimeout: '1s',
      workflowIdConflictPolicy: 'TERMINATE_EXISTING',
    });
    const handle = stack.client.workflow.getHandle(runWorkflowId(run));
    await waitFor(async () => (await handle.describe()).status.name === 'TIMED_OUT', 'the time-out');
    Object.assign(stack.behaviour, usual);
    await stack.reconcile();
    expect(await stack.runIn(id, 'TimedOut')).toMatchObject({ id: run.id });
    expect(await stack.runIn(id, 'Completed')).toMatchObject({ retry_number: 1 });
  });

  it('starts again on its row what Temporal does not know any more', async () => {
    const { id, run } = await runningRun();
    await stack.client.workflowService.deleteWorkflowExecution({
      namespace: stack.settings.TEMPORAL_NAMESPACE,
      workflowExecution: { workflowId: runWorkflowId(run) },
    });
    const handle = stack.client.workflow.getHandle(runWorkflowId(run));
    await waitFor(
      () =>
        handle.describe().then(
          () => false,
          () => true,
        ),
      'the deletion',
    );
    Object.assign(stack.behaviour, usual);
    await stack.reconcile();
    expect(await stack.runIn(id, 'Completed')).toMatchObject({ id: run.id });
    expect(await stack.runsOf(id)).toHaveLength(1);
  });

  it('replaces a workflow whose every attempt fails', async () => {
    const id = await stack.createExport();
    const workflowId = `batch-export-${id}`;
    await stack.client.workflow.getHandle(workflowId).terminate('by hand');
    // A worker that does not know the workflow fails its task, as one whose code throws does.
    const stuck = await stack.client.workflow.start('noSuchWorkflow', {
      workflowId,
      taskQueue: `${stack.settings.EXPORTD_TASK_QUEUE_PREFIX}-control`,
      workflowTaskTimeout: '3s',
    });
    const waiting = await stack.send(id, 'pause');
    await waitFor(
      async () => ((await stuck.describe()).raw.pendingWorkflowTask?.attempt ?? 0) >= 5,
      'the attempts to add up',
    );
    await stack.reconcile();
    await waitFor(async () => (await readCommand(stack.pool, waiting))?.status === 'applied', 'the pause');
  });

  it('records as Terminated what was terminated between the handover of a run and its next execution', async () => {
    const { id, run } = await runningRun();
    const next = await continueRun(stack.journal, run.id);
    await stack.client.workflow.getHandle(runWorkflowId(run)).terminate('by hand');
    await stack.reconcile();
    expect(await stack.runIn(id, 'Terminated')).toMatchObject({ id: next.run_id });
    expect(await stack.runsOf(id)).toHaveLength(2);
  });

  it('wakes a schedule whose slots are free though nobody told it', async () => {
    stack.behaviour.whileExporting = untilCancelled;
    const id = randomUUID();
    await createLaggingExport(stack.journal, id, 1);
    await stack.command(id, 'unpause');
    const run = await stack.runIn(id, 'Running');
    Object.assign(stack.behaviour, usual);
    // The journal has the ending of the run, and its execution ends before it can report it.
    await endRun(stack.journal, stack.policies, run.id, { status: 'Failed', latest_error: 'Error: a test' });
    await stack.client.workflow.getHandle(runWorkflowId(run)).terminate('by hand');
    await waitFor(async () => {
      await stack.reconcile();
      return (await stack.runsOf(id)).length > 1;
    }, 'the next interval');
  });

  it('starts a run again whose workflow failed without a word in the journal', async () => {
    const { id, run } = await runningRun();
    const handle = stack.client.workflow.getHandle(runWorkflowId(run));
    await handle.terminate('to make place');
    // One that fails at once, under the same id and memo.
    const failing = await stack.client.workflow.start('batchExportRun', {
      workflowId: runWorkflowId(run),
      taskQueue: `${stack.settings.EXPORTD_TASK_QUEUE_PREFIX}-control`,
      args: [{}],
      memo: { run_id: run.id },
    });
    await expect(failing.result()).rejects.toThrow();
    Object.assign(stack.behaviour, usual);
    await stack.reconcile();
    expect(await stack.runIn(id, 'Completed')).toMatchObject({ id: run.id });
    expect(await stack.runsOf(id)).toHaveLength(1);
  });

  it('does not start a run again that ends between the looks at the journal and at Temporal', async () => {
    const finish = Promise.withResolvers<undefined>();
    stack.behaviour.whileExporting = () => finish.promise;
    const id = await stack.createExport();
    await stack.command(id, 'backfill', lastHours(1));
    const run = await stack.runIn(id, 'Running');
    const { workflow } = stack.client;
    const real = workflow.getHandle.bind(workflow);
    const handle = real(runWorkflowId(run));
    const { runId } = await handle.describe();
    const describe = async () => {
      finish.resolve(undefined);
      await handle.result();
      return handle.describe();
    };
    const getHandle = jest
      .spyOn(workflow, 'getHandle')
      .mockImplementation((workflowId) =>
        workflowId === handle.workflowId ? { ...handle, describe } : real(workflowId),
      );
    await stack.reconcile().finally(() => getHandle.mockRestore());
    expect(await stack.runIn(id, 'Completed')).toMatchObject({ id: run.id });
    expect(await handle.describe()).toMatchObject({ runId });
  });

  it('stores the signals by hand of a schedule that was terminated before it had stored them', async () => {
    const id = await stack.createExport();
    const handle = stack.client.workflow.getHandle(`batch-export-${id}`);
    await stack.stopWorker();
    for (const name of ['pause', 'unpause', 'pause', 'no such signal']) await handle.signal(name, {});
    await handle.terminate('by hand');
    await stack.startWorker();
    const decided = async () =>
      (
        await stack.pool.query<{ decided: string }>(
          `select name || ' ' || status as decided from exportd.commands where batch_export_id = $1 order by position`,
          [id],
        )
      ).rows.map((row) => row.decided);
    // The list of ended executions follows a moment later.
    await waitFor(async () => {
      await stack.reconcile();
      return (await decided()).length === 5 && (await decided()).every((line) => !line.endsWith('pending'));
    }, 'the signals');
    expect(await decided()).toEqual([
      'create applied',
      'pause applied',
      'unpause applied',
      'pause applied',
      'no such signal rejected',
    ]);
  });

  it('is one of several at a time, and another follows when it ends', async () => {
    const logger = createLogger('test', stack.settings);
    const passes: string[] = [];
    const make = (name: string) =>
      createReconcileLoop({
        pool: stack.pool,
        pass: () => Promise.resolve(void passes.push(name)),
        settings: { EXPORTD_RECONCILE_INTERVAL: 20 },
        logger,
      });
    const [first, second] = [make('first'), make('second')];
    first.start();
    await waitFor(() => passes.length > 2, 'the first');
    second.start();
    await waitFor(() => passes.length > 8, 'some passes');
    expect(new Set(passes)).toEqual(new Set(['first']));
    await first.stop();
    await waitFor(() => passes.includes('second'), 'the second');
    await second.stop();
  });
});
