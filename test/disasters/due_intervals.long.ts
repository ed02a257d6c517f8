import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { workflowIds } from '../../src/contract/workflow_ids.ts';
import { makeMinutesDue } from '../e2e/due_minutes.ts';
import { startStack, type Stack } from '../e2e/stack.ts';
import { verifyExport } from '../e2e/verify_export.ts';
import { failoverWorkers } from '../setup/timeouts.ts';
import { waitFor } from '../setup/wait_for.ts';
import { resetToFirstTask } from './reset_workflow.ts';
import { startsPerInterval } from './run_starts.ts';

const minutes = 4;
let stack: Stack;
let id: string;

beforeAll(async () => {
  stack = await startStack('due-intervals', failoverWorkers);
  // Retried with another export if a minute ended before the worker was dead, because its run may have completed.
  await waitFor(async () => {
    id = await stack.createExport({ interval: 'every 1 minutes' });
    await stack.killWorker();
    const isNew = (await stack.runs(id)).length === 0;
    if (isNew) await makeMinutesDue(stack, id, minutes);
    await stack.startWorker();
    return isNew;
  }, 'an export without runs');
});
afterAll(() => stack.stop());

/** No row is missing or duplicated, and no interval ran twice. */
async function expectExactlyOnce(): Promise<void> {
  const { findings } = await verifyExport(stack, id);
  expect(findings).toEqual([]);
  const starts = await startsPerInterval(stack.pool, id);
  expect(starts.length).toBeGreaterThanOrEqual(minutes);
  expect(starts.filter(({ started }) => started !== 1)).toEqual([]);
}

const allCompleted = async (): Promise<boolean> => {
  const runs = await stack.runs(id);
  return runs.length >= minutes && runs.every(({ status }) => status === 'Completed');
};

describe('an export after all workers were down for some intervals', () => {
  it('exports each missed interval once, with every row', async () => {
    await waitFor(allCompleted, 'every due interval is Completed');
    await expectExactlyOnce();
    const rows = (await stack.runs(id)).reduce((sum, { records_completed }) => sum + records_completed, 0);
    expect(rows).toBe(minutes * 10);
  });

  it('continues after its schedule was reset to the first task, and runs no interval again', async () => {
    await resetToFirstTask(stack.temporalAddress, workflowIds(stack.settings).schedule(id));
    const { status } = await stack.call('POST', `/batch_exports/${id}/pause/`);
    expect(status).toBe(200);
    await waitFor(allCompleted, 'every interval that became due is Completed');
    await expectExactlyOnce();
  });
});
