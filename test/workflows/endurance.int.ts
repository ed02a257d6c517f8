import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { workflowIds } from '../../src/contract/workflow_ids.ts';
import {
  createControlPlaneHarness,
  lastHours,
  type ControlPlaneHarness,
} from '../temporal/control_plane_harness.ts';
import { waitFor } from '../setup/wait_for.ts';
import { blockedBarrier } from '../temporal/fakes.ts';

let stack: ControlPlaneHarness;
beforeAll(async () => {
  stack = await createControlPlaneHarness();
  await stack.startWorker();
});
beforeEach(() => stack.resetBehaviour());
afterAll(() => stack.close());

describe('a schedule', () => {
  it('leaves a run that was terminated before its export started to the reconciler', async () => {
    stack.behaviour.checkBarrier = () =>
      Promise.resolve({ state: blockedBarrier, wait_ms: 200, blocked_by: [] });
    const id = await stack.createExport();
    await stack.command(id, 'backfill', lastHours(1));
    const run = await stack.waitForRun(id, 'Starting');
    const handle = stack.client.workflow.getHandle(workflowIds(stack.settings).run(run));
    await waitFor(
      () =>
        handle.terminate('manually').then(
          () => true,
          () => false,
        ),
      'the terminated run',
    );
    // Both the backfill and the schedule check all runs that have not started.
    const [backfill] = (
      await stack.pool.query<{ id: string }>('select id from exportd.backfills where batch_export_id = $1', [
        id,
      ])
    ).rows;
    await stack.client.workflow
      .getHandle(workflowIds(stack.settings).backfill(backfill?.id ?? ''))
      .signal('wake');
    await stack.command(id, 'pause');
    expect((await handle.describe()).status.name).toBe('TERMINATED');
    await stack.reconcile();
    expect(await stack.waitForRun(id, 'Terminated')).toMatchObject({ id: run.id });
  });

  it('fails at once when it is started manually with an invalid id', async () => {
    const handle = await stack.client.workflow.start('batchExportSchedule', {
      workflowId: `manual-${stack.settings.EXPORTD_TASK_QUEUE_PREFIX}`,
      taskQueue: `${stack.settings.EXPORTD_TASK_QUEUE_PREFIX}-control`,
      args: [{ batch_export_id: 'nonsense' }],
    });
    await expect(handle.result()).rejects.toThrow();
  });
});
