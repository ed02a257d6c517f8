import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { scheduleWorkflowId } from '../../../src/contract/workflow_ids.ts';
import { workflowTypes } from '../../../src/contract/workflow_types.ts';
import { createSignalRecovery } from '../../../src/temporal/reconcilers/signal_recovery.ts';
import { taskQueues } from '../../../src/temporal/task_queues.ts';
import { waitFor } from '../../setup/wait_for.ts';
import { createControlStack, type ControlStack } from '../control_plane_harness.ts';

let stack: ControlStack;
beforeAll(async () => {
  stack = await createControlStack();
  await stack.startWorker();
});
afterAll(() => stack.close());

describe('signals by hand of a schedule that was terminated', () => {
  it('are stored, whatever else was started by hand and failed', async () => {
    const { client, journal, settings, pool } = stack;
    const id = await stack.createExport();
    await stack.stopWorker();
    const schedule = client.workflow.getHandle(scheduleWorkflowId(id));
    await schedule.signal('pause', {});
    await schedule.terminate('by hand');
    for (const input of [{ batch_export_id: 'nonsense' }, { batch_export_id: id, signals: [5] }]) {
      const nonsense = await client.workflow.signalWithStart(workflowTypes.schedule, {
        workflowId: `nonsense-${id}-${JSON.stringify(input).length}`,
        taskQueue: taskQueues(settings).control,
        args: [input],
        signal: 'pause',
        signalArgs: [{}],
      });
      await nonsense.terminate('by hand');
    }
    const lost = createSignalRecovery(client, journal, settings);
    const paused = async () => {
      // What it cannot read it says, after it has read the others.
      await lost.recover().catch(() => undefined);
      const { rows } = await pool.query<{ name: string }>(
        `select name from exportd.commands where batch_export_id = $1 and name = 'pause'`,
        [id],
      );
      return rows.length > 0;
    };
    await waitFor(paused, 'the signal is stored');
    expect(await paused()).toBe(true);
  });
});
