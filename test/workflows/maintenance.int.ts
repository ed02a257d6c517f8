import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DestinationError } from '../../src/destination/destination.ts';
import { maintenanceWorkflowId } from '../../src/contract/workflow_ids.ts';
import { workflowTypes } from '../../src/contract/workflow_types.ts';
import { until } from '../setup/until.ts';
import { createControlStack, lastHours, type ControlStack } from '../temporal/control_plane_harness.ts';

let stack: ControlStack;
beforeAll(async () => {
  stack = await createControlStack({
    EXPORTD_MAINTENANCE_INTERVAL: '100ms',
    EXPORTD_ORPHAN_RETENTION: '0s',
    EXPORTD_OLD_GENERATION_RETENTION: '0s',
    EXPORTD_CONTINUE_AS_NEW_COMMANDS: '10',
    EXPORTD_EXPORT_SLOTS: '1',
  });
  await stack.startWorker();
  await stack.reconcile();
});
afterAll(() => stack.close());

const handle = () =>
  stack.client.workflow.getHandle(maintenanceWorkflowId(stack.settings.EXPORTD_TASK_QUEUE_PREFIX));
const execution = async () => (await handle().describe()).raw.workflowExecutionInfo;
const details = async () => String(await handle().query('__temporal_workflow_metadata').then(detailsOf));
const detailsOf = (metadata: unknown): unknown =>
  (metadata as { currentDetails?: string } | null)?.currentDetails;

/** An export with something to clean up: a manifest that another took the place of. */
async function untidyExport(): Promise<string> {
  const id = await stack.createExport();
  await stack.command(id, 'backfill', lastHours(1));
  const first = await stack.runIn(id, 'Completed');
  await stack.command(id, 'update', { changes: { config_version: 2 } });
  await stack.command(id, 'retry', { run_id: first.id });
  await until(
    async () => (await stack.runsOf(id)).filter(({ status }) => status === 'Completed').length === 2,
    'the second run',
  );
  return id;
}

describe('the upkeep workflow', () => {
  it('is kept alive by the reconciler, and goes on in bounded executions', async () => {
    const first = await execution();
    expect(first?.type?.name).toBe('batchExportUpkeep');
    await until(
      async () => (await execution())?.execution?.runId !== first?.execution?.runId,
      'a next execution',
    );
    expect((await execution())?.firstRunId).toBe(first?.firstRunId);
    await handle().terminate('A person ended it.');
    await stack.reconcile();
    expect((await handle().describe()).status.name).toBe('RUNNING');
  });

  it('puts off what fails, ever longer, and does not keep other exports waiting', async () => {
    const calls: string[] = [];
    const poison = new Set<string>();
    let release = (): void => undefined;
    const hanging = new Promise<void>((resolve) => {
      release = resolve;
    });
    stack.behaviour.cleanUp = async (id) => {
      calls.push(id);
      if (!poison.has(id)) return false;
      await hanging;
      throw new DestinationError('S3Unreachable', 'The S3 server did not answer.', { transient: true });
    };
    poison.add(await untidyExport());
    const [id = ''] = poison;
    await until(() => calls.includes(id), 'the poison export');
    const good = await untidyExport();
    await until(() => calls.includes(good), 'the other export');
    release();
    // Asked once for all: an execution that has just begun shows nothing yet.
    const shown = await until(async () => {
      const text = await details();
      return /failed ([2-9]|\d\d+) times/.test(text) && text;
    }, 'the second failure');
    expect(shown).toContain(`cleanUpExport/${id}`);
    expect(shown).toContain('The S3 server did not answer.');
  });

  it('keeps no export waiting while it hangs', async () => {
    let hangs = false;
    const released = Promise.withResolvers<boolean>();
    stack.behaviour.cleanUp = () => {
      hangs = true;
      return released.promise;
    };
    try {
      await untidyExport();
      await until(() => hangs, 'the bucket that hangs');
      const id = await stack.createExport();
      await stack.command(id, 'backfill', lastHours(1));
      expect(await stack.runIn(id, 'Completed')).toMatchObject({ batch_export_id: id });
    } finally {
      released.resolve(false);
    }
  });

  it('goes on as an execution that began before it had a task queue of its own', async () => {
    const asked = new Set<string>();
    stack.behaviour.cleanUp = (id) => {
      asked.add(id);
      return Promise.resolve(false);
    };
    const { EXPORTD_TASK_QUEUE_PREFIX: queue } = stack.settings;
    await stack.client.workflow.start(workflowTypes.maintenance, {
      workflowId: maintenanceWorkflowId(queue),
      workflowIdConflictPolicy: 'TERMINATE_EXISTING',
      taskQueue: `${queue}-control`,
      args: [{ export_task_queue: `${queue}-export` }],
    });
    const id = await untidyExport();
    await until(() => asked.has(id), 'the clean-up');
    expect(asked).toContain(id);
  });

  it('looks again at once when there is more to do', async () => {
    let calls = 0;
    stack.behaviour.cleanUp = () => Promise.resolve(++calls < 3);
    await untidyExport();
    await until(() => calls >= 3, 'the third call');
    expect(calls).toBeGreaterThanOrEqual(3);
  });
});
