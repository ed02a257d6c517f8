import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { until } from '../setup/until.ts';
import { createControlStack, lastHours, type ControlStack } from '../temporal/control_plane_harness.ts';

let stack: ControlStack;
beforeAll(async () => {
  // Fewer than the steps that so many intervals take at least, however many of them end at once.
  stack = await createControlStack({ EXPORTD_CONTINUE_AS_NEW_COMMANDS: '5' });
  await stack.startWorker();
});
afterAll(() => stack.close());

const statusOf = async (backfillId: string) =>
  (
    await stack.pool.query<{ status: string }>('select status from exportd.backfills where id = $1', [
      backfillId,
    ])
  ).rows[0]?.status;

/** Waits until the Temporal UI shows these words of a backfill; its execution starts after the command's outcome. */
const shows = (backfillId: string, words: RegExp) =>
  until(async () => {
    const handle = stack.client.workflow.getHandle(`batch-export-backfill-${backfillId}`);
    const metadata = await handle
      .query<{ currentDetails?: string } | null>('__temporal_workflow_metadata')
      .catch((error: unknown) => {
        if (Error.isError(error) && error.name === 'WorkflowNotFoundError') return null;
        throw error;
      });
    return words.test(metadata?.currentDetails ?? '');
  }, `words like ${words}`);

describe('the backfill workflow', () => {
  it('runs every interval once, a few at a time, through several executions', async () => {
    let atOnce = 0;
    let most = 0;
    stack.behaviour.whileExporting = async () => {
      atOnce += 1;
      most = Math.max(most, atOnce);
      await new Promise((resolve) => setImmediate(resolve));
      atOnce -= 1;
    };
    const id = await stack.createExport();
    const { outcome } = await stack.command(id, 'backfill', lastHours(24));
    const backfillId = outcome?.backfill_id ?? '';
    await until(async () => (await statusOf(backfillId)) === 'Completed', 'the end of the backfill');
    const handle = stack.client.workflow.getHandle(`batch-export-backfill-${backfillId}`);
    await handle.result();
    const runs = await stack.runsOf(id);
    expect(runs.map(({ status }) => status)).toEqual(Array.from({ length: 24 }, () => 'Completed'));
    expect(new Set(runs.map((run) => run.data_interval_start)).size).toBe(24);
    expect(most).toBeLessThanOrEqual(stack.settings.EXPORTD_BACKFILL_CONCURRENCY);
    const { raw, typedSearchAttributes } = await handle.describe();
    const shown = typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value]);
    expect(Object.fromEntries(shown)).toMatchObject({
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
    stack.behaviour.whileExporting = () => released;
    const { outcome } = await stack.command(id, 'backfill', lastHours(10));
    const backfill_id = outcome?.backfill_id ?? '';
    await stack.command(id, 'pauseBackfill', { backfill_id });
    release();
    await until(
      async () => (await stack.runsOf(id)).every(({ status }) => status === 'Completed'),
      'the runs that had begun',
    );
    expect(await stack.runsOf(id)).toHaveLength(3);
    await shows(backfill_id, /^3 of 10 intervals begun, paused$/);
    await stack.command(id, 'cancelBackfill', { backfill_id });
    await stack.client.workflow.getHandle(`batch-export-backfill-${backfill_id}`).result();
    expect(await statusOf(backfill_id)).toBe('Cancelled');
  });

  it('says that it has paused itself, and no longer once it goes on', async () => {
    const usual = stack.behaviour.whileExporting;
    stack.behaviour.whileExporting = () =>
      Promise.reject(ApplicationFailure.nonRetryable('The bucket is gone.', 'NoSuchBucket'));
    const id = await stack.createExport();
    // So many that some are left to begin when the third has failed.
    const { outcome } = await stack.command(id, 'backfill', lastHours(12));
    const backfill_id = outcome?.backfill_id ?? '';
    await shows(backfill_id, /^[3-8] of 12 intervals begun, paused$/);
    stack.behaviour.whileExporting = usual;
    await stack.command(id, 'unpauseBackfill', { backfill_id });
    await stack.client.workflow.getHandle(`batch-export-backfill-${backfill_id}`).result();
    await shows(backfill_id, /^12 of 12 intervals begun$/);
    expect(await statusOf(backfill_id)).toBe('Completed');
  });
});
