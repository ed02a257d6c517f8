import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DestinationError } from '../../src/destination/destination.ts';
import { workflowIds } from '../../src/contract/workflow_ids.ts';
import { createUntidyExport } from '../temporal/untidy_export.ts';
import { waitFor } from '../setup/wait_for.ts';
import {
  createControlPlaneHarness,
  lastHours,
  type ControlPlaneHarness,
} from '../temporal/control_plane_harness.ts';

let stack: ControlPlaneHarness;
beforeAll(async () => {
  stack = await createControlPlaneHarness({
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

const handle = () => stack.client.workflow.getHandle(workflowIds(stack.settings).maintenance());
const execution = async () => (await handle().describe()).raw.workflowExecutionInfo;
const details = async () => String(await handle().query('__temporal_workflow_metadata').then(detailsOf));
const detailsOf = (metadata: unknown): unknown =>
  (metadata as { currentDetails?: string } | null)?.currentDetails;

describe('the maintenance workflow', () => {
  it('is restarted by the reconciler, and continues as new after a bounded number of rounds', async () => {
    const first = await execution();
    expect(first?.type?.name).toBe('batchExportMaintenance');
    await waitFor(
      async () => (await execution())?.execution?.runId !== first?.execution?.runId,
      'the next execution',
    );
    expect((await execution())?.firstRunId).toBe(first?.firstRunId);
    await handle().terminate('Terminated manually.');
    await stack.reconcile();
    expect((await handle().describe()).status.name).toBe('RUNNING');
  });

  it('backs off after failures of one export without delaying the others', async () => {
    const calls: string[] = [];
    const failing = new Set<string>();
    let release = (): void => undefined;
    const hanging = new Promise<void>((resolve) => {
      release = resolve;
    });
    stack.behaviour.cleanUp = async (id) => {
      calls.push(id);
      if (!failing.has(id)) return false;
      await hanging;
      throw new DestinationError('S3Unreachable', 'The S3 server did not respond.', { transient: true });
    };
    failing.add(await createUntidyExport(stack));
    const [id = ''] = failing;
    await waitFor(() => calls.includes(id), 'the failing export');
    const good = await createUntidyExport(stack);
    await waitFor(() => calls.includes(good), 'the other export');
    release();
    // Checked in one query: an execution that has just started has no details yet.
    const failures = await waitFor(async () => {
      const text = await details();
      return /failed ([2-9]|\d\d+) times/.test(text) && text;
    }, 'the second failure');
    expect(failures).toContain(`cleanUpExport/${id}`);
    expect(failures).toContain('The S3 server did not respond.');
  });

  it('delays no export while it hangs', async () => {
    let hangs = false;
    const released = Promise.withResolvers<boolean>();
    stack.behaviour.cleanUp = () => {
      hangs = true;
      return released.promise;
    };
    try {
      await createUntidyExport(stack);
      await waitFor(() => hangs, 'the bucket that hangs');
      const id = await stack.createExport();
      await stack.command(id, 'backfill', lastHours(1));
      expect(await stack.waitForRun(id, 'Completed')).toMatchObject({ batch_export_id: id });
    } finally {
      released.resolve(false);
    }
  });

  it('starts the next round at once when there is more to do', async () => {
    let calls = 0;
    stack.behaviour.cleanUp = () => Promise.resolve(++calls < 3);
    await createUntidyExport(stack);
    await waitFor(() => calls >= 3, 'the third call');
    expect(calls).toBeGreaterThanOrEqual(3);
  });
});
