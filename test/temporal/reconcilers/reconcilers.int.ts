import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Context } from '@temporalio/activity';
import { randomUUID } from 'node:crypto';
import { workflowIds, workflowTypes } from '../../../src/contract/workflow_ids.ts';
import { continueRun } from '../../../src/decisions/continue_run.ts';
import { endRun } from '../../../src/decisions/run_outcomes.ts';
import { readStartableRun } from '../../../src/decisions/startable_runs.ts';
import { readCommand } from '../../../src/journal/commands.ts';
import { createReconcileLoops } from '../../../src/temporal/reconcilers/reconcile_loops.ts';
import { taskQueues } from '../../../src/temporal/task_queues.ts';
import { searchAttributes } from '../../../workflows/activity_options.ts';
import { createLaggingExport } from '../../decisions/lagging_export.ts';
import { waitFor } from '../../setup/wait_for.ts';
import { type ControlPlaneHarness, createControlPlaneHarness, lastHours } from '../control_plane_harness.ts';
import { type Behaviour, blockedBarrier } from '../fakes.ts';
import { commandsInWords } from '../../journal/read_commands.ts';
import { runInput } from '../../../src/temporal/clients/run_input.ts';

let harness: ControlPlaneHarness;
let defaultBehaviour: Behaviour;
beforeAll(async () => {
  harness = await createControlPlaneHarness({
    EXPORTD_RUN_RETRY_INITIAL: '100ms',
    EXPORTD_MAX_CONCURRENT_RUNS: '1',
    EXPORTD_RECONCILE_INTERVAL: '100ms',
  });
  defaultBehaviour = { ...harness.behaviour };
  await harness.startWorker();
});
beforeEach(() => {
  Object.assign(harness.behaviour, defaultBehaviour);
});
afterAll(() => harness.close());

const untilCancelled = async (): Promise<void> => {
  const context = Context.current();
  const timer = setInterval(() => context.heartbeat(), 100);
  await context.cancelled.finally(() => clearInterval(timer));
};

async function createRunningRun() {
  harness.behaviour.duringExport = untilCancelled;
  const id = await harness.createExport();
  await harness.command(id, 'backfill', lastHours(1));
  return { id, run: await harness.waitForRun(id, 'Running') };
}

describe('the reconciler', () => {
  it('starts a terminated schedule and a terminated backfill again', async () => {
    const id = await harness.createExport();
    harness.behaviour.duringExport = untilCancelled;
    const { outcome } = await harness.command(id, 'backfill', lastHours(1));
    const ids = workflowIds(harness.settings);
    const names = [ids.schedule(id), ids.backfill(outcome?.backfill_id ?? '')];
    for (const name of names)
      await waitFor(
        () =>
          harness.client.workflow
            .getHandle(name)
            .terminate('manually')
            .then(
              () => true,
              () => false,
            ),
        name,
      );
    await harness.reconcile();
    for (const name of names)
      expect((await harness.client.workflow.getHandle(name).describe()).status.name).toBe('RUNNING');
  });

  it('records a terminated run and does not retry it', async () => {
    const { id, run } = await createRunningRun();
    await harness.client.workflow.getHandle(workflowIds(harness.settings).run(run)).terminate('manually');
    await harness.reconcile();
    expect(await harness.waitForRun(id, 'Terminated')).toMatchObject({ id: run.id });
    expect(await harness.runsOf(id)).toHaveLength(1);
  });

  it('records a timed-out run, which is retried', async () => {
    harness.behaviour.checkBarrier = () =>
      Promise.resolve({ state: blockedBarrier, wait_ms: 500, blocked_by: [] });
    const id = await harness.createExport();
    await harness.command(id, 'backfill', lastHours(1));
    const run = await harness.waitForRun(id, 'Starting');
    const startable = await readStartableRun(harness.pool, run.id);
    if (!startable) throw new Error('The run is gone.');
    // The same input with a short timeout, which the other runs of this file must not have on a busy machine.
    await harness.client.workflow.start(workflowTypes.run, {
      workflowId: workflowIds(harness.settings).run(run),
      taskQueue: taskQueues(harness.settings).control,
      args: [runInput(startable, harness.settings)],
      memo: { run_id: run.id },
      workflowExecutionTimeout: '1s',
      workflowIdConflictPolicy: 'TERMINATE_EXISTING',
    });
    const handle = harness.client.workflow.getHandle(workflowIds(harness.settings).run(run));
    await waitFor(async () => (await handle.describe()).status.name === 'TIMED_OUT', 'the timeout');
    Object.assign(harness.behaviour, defaultBehaviour);
    await harness.reconcile();
    expect(await harness.waitForRun(id, 'TimedOut')).toMatchObject({ id: run.id });
    expect(await harness.waitForRun(id, 'Completed')).toMatchObject({ retry_number: 1 });
  });

  it('starts a run again that Temporal no longer knows, under its row', async () => {
    const { id, run } = await createRunningRun();
    await harness.client.workflowService.deleteWorkflowExecution({
      namespace: harness.settings.TEMPORAL_NAMESPACE,
      workflowExecution: { workflowId: workflowIds(harness.settings).run(run) },
    });
    const handle = harness.client.workflow.getHandle(workflowIds(harness.settings).run(run));
    await waitFor(
      () =>
        handle.describe().then(
          () => false,
          () => true,
        ),
      'the deletion',
    );
    Object.assign(harness.behaviour, defaultBehaviour);
    await harness.reconcile();
    expect(await harness.waitForRun(id, 'Completed')).toMatchObject({ id: run.id });
    expect(await harness.runsOf(id)).toHaveLength(1);
  });

  it('restarts a stuck workflow, unless the workers are busy', async () => {
    const id = await harness.createExport();
    const workflowId = workflowIds(harness.settings).schedule(id);
    await harness.client.workflow.getHandle(workflowId).terminate('manually');
    // A worker that does not know the workflow fails its task, like one whose code throws.
    const stuck = await harness.client.workflow.start('noSuchWorkflow', {
      workflowId,
      taskQueue: `${harness.settings.EXPORTD_TASK_QUEUE_PREFIX}-control`,
      workflowTaskTimeout: '3s',
    });
    const waiting = await harness.send(id, 'pause');
    await waitFor(
      async () => ((await stuck.describe()).raw.pendingWorkflowTask?.attempt ?? 0) >= 5,
      'the fifth attempt',
    );
    harness.setIdle(false);
    await harness.reconcile();
    expect(await harness.client.workflow.getHandle(workflowId).describe()).toMatchObject({
      runId: stuck.firstExecutionRunId,
      status: { name: 'RUNNING' },
    });
    harness.setIdle(true);
    await harness.reconcile();
    await waitFor(async () => (await readCommand(harness.pool, waiting))?.status === 'applied', 'the pause');
    const replacement = harness.client.workflow.getHandle(workflowId);
    expect(await (await replacement.describe()).staticSummary()).toMatch(
      /^Schedule of "Events every minute", every hour\. Started by the reconciler: the workflow task of the previous execution failed \d+ times\.$/,
    );
    await waitFor(
      async () => (await replacement.describe()).typedSearchAttributes.get(searchAttributes.name),
      'the name of the export in Temporal',
    );
  });

  it('records a termination between the continuation of a run and its next execution as Terminated', async () => {
    const { id, run } = await createRunningRun();
    const next = await continueRun(harness.journal, run.id);
    await harness.client.workflow.getHandle(workflowIds(harness.settings).run(run)).terminate('manually');
    await harness.reconcile();
    expect(await harness.waitForRun(id, 'Terminated')).toMatchObject({ id: next.run_id });
    expect(await harness.runsOf(id)).toHaveLength(2);
  });

  it('wakes a schedule that was not signalled about its free slots', async () => {
    harness.behaviour.duringExport = untilCancelled;
    const id = randomUUID();
    await createLaggingExport(harness.journal, id, 1);
    await harness.command(id, 'unpause');
    const run = await harness.waitForRun(id, 'Running');
    Object.assign(harness.behaviour, defaultBehaviour);
    // The journal records the end of the run, and its execution closes before it can signal it.
    await endRun(harness.journal, harness.policies, run.id, {
      status: 'Failed',
      latest_error: 'Error: a test',
    });
    await harness.client.workflow.getHandle(workflowIds(harness.settings).run(run)).terminate('manually');
    await waitFor(async () => {
      await harness.reconcile();
      return (await harness.runsOf(id)).length > 1;
    }, 'the next interval');
  });

  it('starts a run again whose workflow failed without recording an outcome', async () => {
    const { id, run } = await createRunningRun();
    const handle = harness.client.workflow.getHandle(workflowIds(harness.settings).run(run));
    await handle.terminate('to free the workflow id');
    // An execution with the same id and memo that fails at once.
    const failing = await harness.client.workflow.start('batchExportRun', {
      workflowId: workflowIds(harness.settings).run(run),
      taskQueue: `${harness.settings.EXPORTD_TASK_QUEUE_PREFIX}-control`,
      args: [{}],
      memo: { run_id: run.id },
    });
    await expect(failing.result()).rejects.toThrow();
    Object.assign(harness.behaviour, defaultBehaviour);
    await harness.reconcile();
    expect(await harness.waitForRun(id, 'Completed')).toMatchObject({ id: run.id });
    expect(await harness.runsOf(id)).toHaveLength(1);
  });

  it('does not start a run again that ends between the reads of the journal and of Temporal', async () => {
    const finish = Promise.withResolvers<undefined>();
    harness.behaviour.duringExport = () => finish.promise;
    const id = await harness.createExport();
    await harness.command(id, 'backfill', lastHours(1));
    const run = await harness.waitForRun(id, 'Running');
    const { workflow } = harness.client;
    const real = workflow.getHandle.bind(workflow);
    const handle = real(workflowIds(harness.settings).run(run));
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
    await harness.reconcile().finally(() => getHandle.mockRestore());
    expect(await harness.waitForRun(id, 'Completed')).toMatchObject({ id: run.id });
    expect(await handle.describe()).toMatchObject({ runId });
  });

  it('stores the manual signals of a schedule that was terminated before it stored them', async () => {
    const id = await harness.createExport();
    const handle = harness.client.workflow.getHandle(workflowIds(harness.settings).schedule(id));
    await harness.stopWorker();
    for (const name of ['pause', 'unpause', 'pause', 'no such signal']) await handle.signal(name, {});
    await handle.terminate('manually');
    await harness.startWorker();
    const decided = () => commandsInWords(harness.pool, id);
    // Temporal lists ended executions with a short delay.
    await waitFor(async () => {
      await harness.reconcile();
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

  it('runs in one process at a time, and in another when that one ends', async () => {
    const passes: string[] = [];
    const make = (name: string) =>
      createReconcileLoops(
        {
          ...harness.reconcilerDependencies,
          settings: { ...harness.settings, EXPORTD_RECONCILE_INTERVAL: 20 },
        },
        { one: () => Promise.resolve(void passes.push(name)), other: () => Promise.resolve() },
      );
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
