import { ServiceError } from '@temporalio/client';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { workflowIds } from '../../../src/contract/workflow_ids.ts';
import { reconcileCommands, reconcileSchedules } from '../../../src/temporal/reconcilers/registry.ts';
import { createReconcileLoops } from '../../../src/temporal/reconcilers/reconcile_loops.ts';
import type {
  Reconciler,
  ReconcilerDependencies,
} from '../../../src/temporal/reconcilers/check_executions.ts';
import { createLaggingExport } from '../../isolation/lagging_export.ts';
import { storeTestCommand } from '../../journal/store_test_command.ts';
import { waitFor } from '../../setup/wait_for.ts';
import { createControlPlaneHarness, type ControlPlaneHarness } from '../control_plane_harness.ts';

/** No worker runs: executions stay as reconcilers start them. */
let harness: ControlPlaneHarness;
beforeAll(async () => {
  harness = await createControlPlaneHarness({
    EXPORTD_RECONCILE_INTERVAL: '100ms',
    EXPORTD_LOG_LEVEL: 'silent',
  });
});
afterEach(async () => {
  jest.restoreAllMocks();
  await harness.pool.query('update exportd.batch_exports set deleted = true');
});
afterAll(() => harness.close());

const workflowIdOf = (id: string): string => workflowIds(harness.settings).schedule(id);

/** Creates exports an hour ago, since a new one is not missed yet. */
async function createExports(count: number): Promise<string[]> {
  const create = async () => (await createLaggingExport(harness, 3)).id;
  const ids = await Promise.all(Array.from({ length: count }, create));
  await harness.pool.query(
    `update exportd.batch_exports set created_at = created_at - interval '1 hour' where id = any($1)`,
    [ids],
  );
  return ids;
}

/** Those of the exports whose schedule runs. */
const running = async (ids: readonly string[]): Promise<string[]> => {
  const listed = await harness.reconcilerDependencies.executionLists.running('batchExportSchedule');
  const workflows = new Set(listed.map(({ workflow_id }) => workflow_id));
  return ids.filter((id) => workflows.has(workflowIdOf(id)));
};

const unavailable = new ServiceError('Temporal is busy.');

/** Loops of some reconcilers, with replaced dependencies. */
const loopsOf = (
  reconcilers: Readonly<Record<string, Reconciler>>,
  replaced: Partial<ReconcilerDependencies> = {},
) => createReconcileLoops({ ...harness.reconcilerDependencies, ...replaced }, reconcilers);

describe('schedules', () => {
  it('are all started, but that of an export whose state cannot be read is only counted as failed', async () => {
    const ids = await createExports(3);
    await harness.pool.query(
      `update exportd.stream_states set state = jsonb_set(state, '{revisions,0,interval}', '"quarter"') where stream_id = $1`,
      [ids[0]],
    );
    const loops = loopsOf({ schedules: reconcileSchedules });
    await loops.runOnce();
    await waitFor(async () => (await running(ids)).length === 3, 'the three schedules');
    expect(loops.statistics()).toMatchObject([
      { name: 'schedules', last_pass: { outcome: 'completed', expected: 3, repaired: 3, failed: 1 } },
    ]);
  });

  it('are started although Temporal refuses one of them again and again', async () => {
    const ids = await createExports(3);
    const refused = ids.toSorted()[0];
    const { schedules } = harness.reconcilerDependencies;
    const start = (id: string) => (id === refused ? Promise.reject(unavailable) : schedules.start(id));
    const loops = loopsOf({ schedules: reconcileSchedules }, { schedules: { ...schedules, start } });
    await loops.runOnce();
    await waitFor(async () => (await running(ids)).length === 2, 'the two others');
    expect(loops.statistics()[0]?.last_pass).toMatchObject({ outcome: 'completed', repaired: 2, failed: 1 });
  });

  it('cost a list, and a description only of those that are missing or overdue, and of a sample', async () => {
    const ids = await createExports(60);
    // In the future, so that none is overdue.
    await harness.pool.query(
      `update exportd.batch_exports set scheduled_until = clock_timestamp() + interval '1 day' where not deleted`,
    );
    const loops = loopsOf({ schedules: reconcileSchedules });
    await loops.runOnce();
    await waitFor(async () => (await running(ids)).length === 60, 'all schedules');
    await loops.runOnce();
    const steady = loops.statistics()[0]?.last_pass;
    expect(steady).toMatchObject({
      outcome: 'completed',
      expected: 60,
      described: 10,
      repaired: 0,
      failed: 0,
    });
    // The descriptions, the list, and a query for reported problems.
    expect(steady?.requests).toBeLessThanOrEqual(12);

    const [missing = '', overdue = ''] = ids;
    await harness.client.workflow.getHandle(workflowIdOf(missing)).terminate('manually');
    await harness.pool.query(
      `update exportd.batch_exports set scheduled_until = clock_timestamp() - interval '3 minutes' where id = any($1)`,
      [[missing, overdue]],
    );
    await waitFor(async () => (await running(ids)).length === 59, 'the end of a schedule');
    const describe = jest.spyOn(harness.client.workflow, 'getHandle');
    await loops.runOnce();
    const described = describe.mock.calls.map(([workflowId]) => workflowId);
    expect(described).toEqual(expect.arrayContaining([missing, overdue].map(workflowIdOf)));
    expect(described.length).toBeLessThanOrEqual(12);
    await waitFor(async () => (await running([missing])).length === 1, 'the missing schedule');
  });

  it('are suspected of having missed an interval only when it is long due, if the worker is busy', async () => {
    await createExports(30);
    await loopsOf({ schedules: reconcileSchedules }).runOnce();
    const settings = { ...harness.settings, EXPORTD_RECONCILE_INTERVAL: 60_000 };
    const describedBy = async (isIdle: boolean) => {
      const loops = loopsOf({ schedules: reconcileSchedules }, { settings, isIdle: () => isIdle });
      await loops.runOnce();
      return loops.statistics()[0]?.last_pass?.described;
    };
    await waitFor(async () => (await describedBy(true)) === 30, 'the lists of Temporal name all of them');
    expect(await describedBy(false)).toBe(10);
  });
});

describe('the sample of a pass', () => {
  it('is another in each pass, until all schedules were described', async () => {
    const ids = await createExports(35);
    await harness.pool.query(
      `update exportd.batch_exports set scheduled_until = clock_timestamp() + interval '1 day' where not deleted`,
    );
    const loops = loopsOf({ schedules: reconcileSchedules });
    await loops.runOnce();
    await waitFor(async () => (await running(ids)).length === 35, 'all schedules');
    const getHandle = jest.spyOn(harness.client.workflow, 'getHandle');
    for (let pass = 0; pass < 4; pass += 1) await loops.runOnce();
    const described = new Set(getHandle.mock.calls.map(([workflowId]) => workflowId));
    expect(described).toEqual(new Set(ids.map(workflowIdOf)));
  });
});

describe('pending commands', () => {
  it('of one export keep no other from its signal, however many they are', async () => {
    const [flooded = '', other = ''] = await createExports(2);
    await harness.pool.query(
      `insert into exportd.commands (id, batch_export_id, team_id, name)
       select gen_random_uuid(), $1, 1, 'pause' from generate_series(1, 1500)`,
      [flooded],
    );
    await storeTestCommand(harness.pool, other, 'pause');
    const signalled: string[] = [];
    const { schedules } = harness.reconcilerDependencies;
    const signal = ({ batch_export_id }: { readonly batch_export_id: string }) => {
      signalled.push(batch_export_id);
      return batch_export_id === flooded ? Promise.reject(unavailable) : Promise.resolve();
    };
    await loopsOf({ commands: reconcileCommands }, { schedules: { ...schedules, signal } }).runOnce();
    expect(signalled.toSorted()).toEqual([flooded, other].toSorted());
    await harness.pool.query(`update exportd.commands set status = 'withdrawn'`);
  });
});

describe('a reconciler', () => {
  it('delays no other while it hangs or fails', async () => {
    const hang = Promise.withResolvers<undefined>();
    let passes = 0;
    const loops = loopsOf(
      {
        hanging: async () => hang.promise,
        failing: () => Promise.reject(unavailable),
        working: () => Promise.resolve(void (passes += 1)),
      },
      { settings: { ...harness.settings, EXPORTD_RECONCILE_INTERVAL: 20 } },
    );
    loops.start();
    try {
      await waitFor(() => passes > 3, 'passes of the third', 60_000);
    } finally {
      hang.resolve(undefined);
      await loops.stop();
    }
    expect(loops.statistics()).toMatchObject([
      { name: 'hanging', passes: { completed: 1 } },
      { name: 'failing', passes: { completed: 0 }, last_pass: { outcome: 'failed' } },
      { name: 'working', last_pass: { outcome: 'completed' } },
    ]);
  });

  it('ends a pass when Temporal serves nothing, and continues with the others in the next one', async () => {
    const items = Array.from({ length: 100 }, (_, index) => String(index).padStart(3, '0'));
    const tried: string[][] = [];
    const loops = loopsOf({
      down: async (_dependencies, pass) => {
        const own: string[] = [];
        tried.push(own);
        await pass.forEachItem(
          items,
          (item) => item,
          (item) => {
            own.push(item);
            return Promise.reject(unavailable);
          },
        );
      },
    });
    for (let pass = 0; pass < 10; pass += 1) await expect(loops.runOnce()).rejects.toBe(unavailable);
    expect(tried[0]?.length).toBeLessThan(30);
    expect(new Set(tried.flat())).toEqual(new Set(items));
  });
});
