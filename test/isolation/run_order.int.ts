import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { workflowIds } from '../../src/contract/workflow_ids.ts';
import { waitFor } from '../setup/wait_for.ts';
import {
  createControlPlaneHarness,
  lastHours,
  type ControlPlaneHarness,
} from '../temporal/control_plane_harness.ts';
import { createLaggingExport } from './lagging_export.ts';
import { readRun } from '../decisions/read_runs.ts';

let stack: ControlPlaneHarness;
beforeAll(async () => {
  stack = await createControlPlaneHarness({
    EXPORTD_EXPORT_SLOTS: '1',
    EXPORTD_BACKFILL_CONCURRENCY: '8',
    EXPORTD_HEARTBEAT_TIMEOUT: '60s',
  });
  await stack.startWorker();
});
afterAll(() => stack.close());

it('a scheduled run has priority over runs of a backfill that have waited longer', async () => {
  const order: string[] = [];
  const { promise: released, resolve: release } = Promise.withResolvers<undefined>();
  const backlog = await stack.createExport();
  /** How many runs have a pending export activity in Temporal. */
  const waiting = async (id: string) => {
    const pending = await Promise.all(
      (await stack.runsOf(id)).map(async (run) => {
        const handle = stack.client.workflow.getHandle(workflowIds(stack.settings).run(run));
        const described = await handle.describe().catch(() => undefined);
        return described?.raw.pendingActivities?.length ?? 0;
      }),
    );
    return pending.filter((activities) => activities > 0).length;
  };
  stack.behaviour.duringExport = async (runId) => {
    const isFirst = order.push((await readRun(stack.pool, runId)).batch_export_id) === 1;
    await released;
    // A pending activity reaches its task queue a moment after Temporal reports it. Some requests fill that time.
    if (isFirst) for (let requests = 0; requests < 20; requests += 1) await waiting(backlog);
  };
  await stack.command(backlog, 'backfill', lastHours(8));
  await waitFor(async () => order.length === 1 && (await waiting(backlog)) === 8, 'the backlog');
  const { id } = await createLaggingExport(stack, 1);
  await stack.reconcile();
  await waitFor(async () => (await waiting(id)) >= 1, 'the scheduled run is pending behind it');
  release(undefined);
  await waitFor(() => order.length >= 9, 'all of them');
  expect(order).toContain(id);
  // In the order of waiting it would be the last, at 8. The worker fetches some of the backlog before the scheduled run
  // reaches the task queue, more of it on a busy machine.
  expect(order.indexOf(id)).toBeLessThanOrEqual(5);
});
