import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { runWorkflowId } from '../../src/contract/workflow_ids.ts';
import {
  createControlStack,
  lastHours,
  type Behaviour,
  type ControlStack,
} from '../temporal/control_plane_harness.ts';
import { until } from '../setup/until.ts';

let stack: ControlStack;
let usual: Behaviour;
beforeAll(async () => {
  stack = await createControlStack();
  usual = { ...stack.behaviour };
  await stack.startWorker();
});
beforeEach(() => {
  Object.assign(stack.behaviour, usual);
});
afterAll(() => stack.close());

describe('a schedule', () => {
  it('leaves a run that was terminated before its export began to the reconciler', async () => {
    stack.behaviour.checkBarrier = () =>
      Promise.resolve({ state: { phase: 'transactions', blockers: ['3/4'] }, wait_ms: 200, blocked_by: [] });
    const id = await stack.createExport();
    await stack.command(id, 'backfill', lastHours(1));
    const run = await stack.runIn(id, 'Starting');
    const handle = stack.client.workflow.getHandle(runWorkflowId(run));
    await until(
      () =>
        handle.terminate('by hand').then(
          () => true,
          () => false,
        ),
      'the run to be terminated',
    );
    // Both look at every run that has not begun.
    const [backfill] = (
      await stack.pool.query<{ id: string }>('select id from exportd.backfills where batch_export_id = $1', [
        id,
      ])
    ).rows;
    await stack.client.workflow.getHandle(`batch-export-backfill-${backfill?.id ?? ''}`).signal('wake');
    await stack.command(id, 'pause');
    expect((await handle.describe()).status.name).toBe('TERMINATED');
    await stack.reconcile();
    expect(await stack.runIn(id, 'Terminated')).toMatchObject({ id: run.id });
  });

  it('that is started by hand for what is no id ends at once', async () => {
    const handle = await stack.client.workflow.start('batchExportSchedule', {
      workflowId: `by-hand-${stack.settings.EXPORTD_TASK_QUEUE_PREFIX}`,
      taskQueue: `${stack.settings.EXPORTD_TASK_QUEUE_PREFIX}-control`,
      args: [{ batch_export_id: 'nonsense' }],
    });
    await expect(handle.result()).rejects.toThrow();
  });
});
