import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { workflowIds } from '../../../src/contract/workflow_ids.ts';
import { createRunRecorder } from '../../../src/decisions/run_recorder.ts';
import type { RunStatus } from '../../../src/domain/run_state.ts';
import { waitFor } from '../../setup/wait_for.ts';
import { lastHours, type ControlPlaneHarness } from '../../temporal/control_plane_harness.ts';
import { readChain, waitUntilIdle, waitUntilStarted, waitUntilWaiting, type Scenario } from './scenario.ts';
import { blockedBarrier, checkBarrierSlowly, completingSmallRuns } from '../../temporal/fakes.ts';

/** Starts a run of a new export. */
async function startRun(stack: ControlPlaneHarness) {
  const id = await stack.createExport();
  await stack.command(id, 'backfill', lastHours(1));
  const [run] = await waitFor(async () => {
    const runs = await stack.runsOf(id);
    return runs.length > 0 && runs;
  }, 'a run');
  if (!run) throw new Error('There is no run.');
  const workflowId = workflowIds(stack.settings).run(run);
  await waitUntilStarted(stack, workflowId);
  /** Waits for the end of its execution, whatever that is. */
  const waitUntilClosed = async (status: RunStatus) => {
    await stack.waitForRun(id, status);
    await waitFor(async () => {
      const { status: execution } = await stack.client.workflow.getHandle(workflowId).describe();
      return execution.name !== 'RUNNING';
    }, 'the end of the execution');
  };
  return { id, run, workflowId, waitUntilClosed };
}

/** A scenario of one run that ends with a status. */
const ending = (
  name: string,
  status: RunStatus,
  prepare: (stack: ControlPlaneHarness) => void,
  settings: Record<string, string> = {},
): Scenario => ({
  histories: [name],
  settings: () => settings,
  play: async (stack, record) => {
    prepare(stack);
    const { workflowId, waitUntilClosed } = await startRun(stack);
    await waitUntilClosed(status);
    await record(name, workflowId);
  },
});

const openTransaction = (stack: ControlPlaneHarness): void => {
  stack.behaviour.checkBarrier = () =>
    Promise.resolve({
      state: blockedBarrier,
      wait_ms: 50,
      blocked_by: ['a session of "etl"'],
    });
};

/** Completes a run and starts a retry of it, which the fakes check before it exports. */
async function startRetry(stack: ControlPlaneHarness) {
  const { id, run, waitUntilClosed } = await startRun(stack);
  await waitUntilClosed('Completed');
  await stack.command(id, 'retry', { run_id: run.id });
  const retry = await waitFor(
    async () => (await stack.runsOf(id)).find((other) => other.id !== run.id),
    'the retry',
  );
  return { id, workflowId: workflowIds(stack.settings).run(retry) };
}

/** Exports until the activity is cancelled, with heartbeats. */
const exportUntilCancelled = async (): Promise<void> => {
  const context = Context.current();
  const timer = setInterval(() => context.heartbeat(), 100);
  await context.cancelled.finally(() => clearInterval(timer));
};

const splitKeys = ['10:05', '10:10', '10:15', '10:20', '10:25', '10:30'].map((time) => ({
  inserted_at: `2026-11-01T${time}:00.000000Z`,
  id: 'row',
}));

export const runScenarios: readonly Scenario[] = [
  {
    histories: ['run-settling'],
    play: async (stack, record) => {
      openTransaction(stack);
      const { workflowId } = await startRun(stack);
      const handle = stack.client.workflow.getHandle(workflowId);
      await waitFor(async () => (await handle.describe()).historyLength > 20, 'some polls of the barrier');
      await waitUntilIdle(stack, workflowId);
      await record('run-settling', workflowId);
    },
  },
  ending('run-settle-timeout', 'Completed', openTransaction, { EXPORTD_SETTLE_TIMEOUT: '500ms' }),
  ending('run-slow-source', 'Completed', ({ behaviour }) => {
    behaviour.checkBarrier = checkBarrierSlowly;
  }),
  {
    histories: ['run-exporting', 'run-completed'],
    play: async (stack, record) => {
      const released = Promise.withResolvers<undefined>();
      stack.behaviour.duringExport = () => released.promise;
      const { id, workflowId, waitUntilClosed } = await startRun(stack);
      await stack.waitForRun(id, 'Running');
      await waitUntilWaiting(stack, workflowId);
      await record('run-exporting', workflowId);
      released.resolve(undefined);
      await waitUntilClosed('Completed');
      await record('run-completed', workflowId);
    },
  },
  ending('run-empty', 'Completed', ({ behaviour }) => {
    behaviour.countRows = () => Promise.resolve(0);
  }),
  ending('run-small', 'Completed', ({ behaviour, journal }) => {
    behaviour.completeSmallRun = completingSmallRuns(createRunRecorder(journal));
  }),
  {
    histories: ['run-compared', 'run-replaced'],
    play: async (stack, record) => {
      const released = Promise.withResolvers<undefined>();
      const reached = Promise.withResolvers<undefined>();
      stack.behaviour.checkReplacement = () => {
        reached.resolve(undefined);
        return released.promise;
      };
      const { workflowId } = await startRetry(stack);
      await reached.promise;
      await waitUntilWaiting(stack, workflowId);
      await record('run-compared', workflowId);
      released.resolve(undefined);
      await stack.client.workflow.getHandle(workflowId).result();
      await record('run-replaced', workflowId);
    },
  },
  {
    histories: ['run-held'],
    play: async (stack, record) => {
      stack.behaviour.checkReplacement = () =>
        Promise.reject(ApplicationFailure.nonRetryable('2 rows are missing.', 'RowsMissingInSource'));
      const { id, workflowId } = await startRetry(stack);
      await stack.waitForRun(id, 'Failed');
      await stack.client.workflow
        .getHandle(workflowId)
        .result()
        .catch(() => undefined);
      await record('run-held', workflowId);
    },
  },
  ending('run-failed', 'Failed', ({ behaviour }) => {
    behaviour.duringExport = () =>
      Promise.reject(ApplicationFailure.nonRetryable('There is no bucket "b".', 'NoSuchBucket'));
  }),
  ending('run-budget-exceeded', 'FailedRetryable', (stack) => {
    stack.behaviour.duringExport = () =>
      Promise.reject(ApplicationFailure.retryable('The S3 server did not respond.', 'S3Unreachable'));
    stack.setActivityTimeout(2_000);
  }),
  {
    histories: ['run-cancelled'],
    play: async (stack, record) => {
      stack.behaviour.duringExport = exportUntilCancelled;
      const { id, run, workflowId, waitUntilClosed } = await startRun(stack);
      await stack.waitForRun(id, 'Running');
      await stack.command(id, 'cancelRun', { run_id: run.id });
      await waitUntilClosed('Cancelled');
      await record('run-cancelled', workflowId);
    },
  },
  {
    histories: ['run-continued', 'run-continued-completed'],
    play: async (stack, record) => {
      let executions = 0;
      stack.behaviour.isLastExecution = () => ++executions === 4;
      const { workflowId, waitUntilClosed } = await startRun(stack);
      await waitUntilClosed('Completed');
      const links = await readChain(stack, workflowId);
      await record('run-continued', workflowId, links[0]?.runId);
      await record('run-continued-completed', workflowId, links.at(-1)?.runId);
    },
  },
  ...(['run-ranges', 'run-ranges-failed'] as const).map((name) =>
    ending(
      name,
      name === 'run-ranges' ? 'Completed' : 'Failed',
      ({ behaviour }) => {
        behaviour.splitKeys = () => Promise.resolve(splitKeys);
        if (name === 'run-ranges-failed')
          behaviour.duringExport = (_, range) =>
            range === 3
              ? Promise.reject(ApplicationFailure.nonRetryable('There is no bucket "b".', 'NoSuchBucket'))
              : exportUntilCancelled();
      },
      { EXPORTD_RANGE_ROWS: '1', EXPORTD_EXPORT_SLOTS: '10' },
    ),
  ),
];
