import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { workflowIds, workflowTypes } from '../../../src/contract/workflow_ids.ts';
import { createExecutionLists } from '../../../src/temporal/clients/executions.ts';
import { createSignalRecovery } from '../../../src/temporal/reconcilers/signal_recovery.ts';
import { taskQueues } from '../../../src/temporal/task_queues.ts';
import { waitFor } from '../../setup/wait_for.ts';
import { createControlPlaneHarness, type ControlPlaneHarness } from '../control_plane_harness.ts';
import { readCommands } from '../../journal/read_commands.ts';

let harness: ControlPlaneHarness;
beforeAll(async () => {
  harness = await createControlPlaneHarness();
  await harness.startWorker();
});
afterAll(() => harness.close());

describe('manual signals of a terminated schedule', () => {
  it('are stored, whatever other workflows were started manually and failed', async () => {
    const { client, journal, settings, pool } = harness;
    const id = await harness.createExport();
    await harness.stopWorker();
    const schedule = client.workflow.getHandle(workflowIds(harness.settings).schedule(id));
    await schedule.signal('pause', {});
    await schedule.terminate('manually');
    for (const input of [{ batch_export_id: 'nonsense' }, { batch_export_id: id, signals: [5] }]) {
      const nonsense = await client.workflow.signalWithStart(workflowTypes.schedule, {
        workflowId: `nonsense-${id}-${JSON.stringify(input).length}`,
        taskQueue: taskQueues(settings).control,
        args: [input],
        signal: 'pause',
        signalArgs: [{}],
      });
      await nonsense.terminate('manually');
    }
    const recovery = createSignalRecovery(client, createExecutionLists(client, settings), journal, {
      allowsManualSignals: true,
    });
    const paused = async () => {
      // What cannot be read keeps no other from being recovered.
      await Promise.allSettled((await recovery.endedSchedules()).map((ended) => recovery.recover(ended)));
      return (await readCommands(pool, id)).some(({ name }) => name === 'pause');
    };
    await waitFor(paused, 'the signal is stored');
    expect(await paused()).toBe(true);
  });
});
