import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { until } from '../setup/until.ts';
import { createControlStack, lastHours, type ControlStack } from '../temporal/control_stack.ts';

let stack: ControlStack;
beforeAll(async () => {
  stack = await createControlStack({ EXPORTD_CONTINUE_AS_NEW_COMMANDS: '10' });
  await stack.startWorker();
});
afterAll(() => stack.close());

const statusOf = async (backfillId: string) =>
  (
    await stack.pool.query<{ status: string }>('select status from exportd.backfills where id = $1', [
      backfillId,
    ])
  ).rows[0]?.status;

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
    const { raw } = await handle.describe();
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
    await stack.command(id, 'cancelBackfill', { backfill_id });
    await stack.client.workflow.getHandle(`batch-export-backfill-${backfill_id}`).result();
    expect(await statusOf(backfill_id)).toBe('Cancelled');
  });
});
