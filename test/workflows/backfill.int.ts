import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { workflowIds } from '../../src/contract/workflow_ids.ts';
import { waitFor } from '../setup/wait_for.ts';
import {
  createControlPlaneHarness,
  lastHours,
  type ControlPlaneHarness,
} from '../temporal/control_plane_harness.ts';

let stack: ControlPlaneHarness;
beforeAll(async () => {
  // Fewer than the steps of 24 intervals, even when several of them end at the same time.
  stack = await createControlPlaneHarness({ EXPORTD_CONTINUE_AS_NEW_COMMANDS: '5' });
  await stack.startWorker();
});
afterAll(() => stack.close());

const statusOf = async (backfillId: string) =>
  (
    await stack.pool.query<{ status: string }>('select status from exportd.backfills where id = $1', [
      backfillId,
    ])
  ).rows[0]?.status;

/** Waits until the details of a backfill in the Temporal UI match. Its execution starts after the command's outcome. */
const waitForDetails = (backfillId: string, pattern: RegExp) =>
  waitFor(async () => {
    const handle = stack.client.workflow.getHandle(workflowIds(stack.settings).backfill(backfillId));
    const metadata = await handle
      .query<{ currentDetails?: string } | null>('__temporal_workflow_metadata')
      .catch((error: unknown) => {
        if (Error.isError(error) && error.name === 'WorkflowNotFoundError') return null;
        throw error;
      });
    return pattern.test(metadata?.currentDetails ?? '');
  }, `details like ${pattern}`);

describe('the backfill workflow', () => {
  it('runs every interval once, a few at a time, across several executions', async () => {
    let running = 0;
    let maxRunning = 0;
    stack.behaviour.duringExport = async () => {
      running += 1;
      maxRunning = Math.max(maxRunning, running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
    };
    const id = await stack.createExport();
    const { outcome } = await stack.command(id, 'backfill', lastHours(24));
    const backfillId = outcome?.backfill_id ?? '';
    await waitFor(async () => (await statusOf(backfillId)) === 'Completed', 'the end of the backfill');
    const handle = stack.client.workflow.getHandle(workflowIds(stack.settings).backfill(backfillId));
    await handle.result();
    const runs = await stack.runsOf(id);
    expect(runs.map(({ status }) => status)).toEqual(Array.from({ length: 24 }, () => 'Completed'));
    expect(new Set(runs.map((run) => run.data_interval_start)).size).toBe(24);
    expect(maxRunning).toBeLessThanOrEqual(stack.settings.EXPORTD_BACKFILL_CONCURRENCY);
    const { raw, typedSearchAttributes } = await handle.describe();
    const attributes = typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value]);
    expect(Object.fromEntries(attributes)).toMatchObject({
      ExportdProject: '1',
      ExportdBatchExport: id,
      ExportdModel: 'events',
      ExportdDestination: 'S3',
      ExportdBackfill: backfillId,
      ExportdStatus: 'Completed',
    });
    expect(raw.workflowExecutionInfo?.firstRunId).not.toBe(raw.workflowExecutionInfo?.execution?.runId);
  });

  it('starts no run while it is paused, and ends when it is cancelled', async () => {
    const id = await stack.createExport();
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    stack.behaviour.duringExport = () => released;
    const { outcome } = await stack.command(id, 'backfill', lastHours(10));
    const backfill_id = outcome?.backfill_id ?? '';
    await stack.command(id, 'pauseBackfill', { backfill_id });
    release();
    await waitFor(
      async () => (await stack.runsOf(id)).every(({ status }) => status === 'Completed'),
      'the runs that had started',
    );
    expect(await stack.runsOf(id)).toHaveLength(3);
    await waitForDetails(backfill_id, /^3 of 10 intervals started, paused$/);
    await stack.command(id, 'cancelBackfill', { backfill_id });
    await stack.client.workflow.getHandle(workflowIds(stack.settings).backfill(backfill_id)).result();
    expect(await statusOf(backfill_id)).toBe('Cancelled');
  });

  it('reports its automatic pause until it is unpaused', async () => {
    const defaultExport = stack.behaviour.duringExport;
    stack.behaviour.duringExport = () =>
      Promise.reject(ApplicationFailure.nonRetryable('The bucket was deleted.', 'NoSuchBucket'));
    const id = await stack.createExport();
    // Enough that some have not started when the third has failed.
    const { outcome } = await stack.command(id, 'backfill', lastHours(12));
    const backfill_id = outcome?.backfill_id ?? '';
    await waitForDetails(backfill_id, /^[3-8] of 12 intervals started, paused$/);
    stack.behaviour.duringExport = defaultExport;
    await stack.command(id, 'unpauseBackfill', { backfill_id });
    await stack.client.workflow.getHandle(workflowIds(stack.settings).backfill(backfill_id)).result();
    await waitForDetails(backfill_id, /^12 of 12 intervals started$/);
    expect(await statusOf(backfill_id)).toBe('Completed');
  });
});
