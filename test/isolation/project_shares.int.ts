import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { waitFor } from '../setup/wait_for.ts';
import {
  createControlPlaneHarness,
  lastHours,
  type ControlPlaneHarness,
} from '../temporal/control_plane_harness.ts';

const slots = 2;
/** Runs of the project whose attempts hang. */
const hanging = 20;

let stack: ControlPlaneHarness;
beforeAll(async () => {
  stack = await createControlPlaneHarness({
    EXPORTD_EXPORT_SLOTS: String(slots),
    EXPORTD_BACKFILL_CONCURRENCY: String(hanging),
    EXPORTD_HEARTBEAT_TIMEOUT: '60s',
  });
  await stack.startWorker();
});
afterAll(() => stack.close());

const projectOf = async (runId: string): Promise<number | undefined> => {
  const { rows } = await stack.pool.query<{ team_id: number }>(
    'select team_id from exportd.batch_export_runs where id = $1',
    [runId],
  );
  return rows[0]?.team_id;
};

it('runs of a project that take all slots and do not end delay no run of another project', async () => {
  const started: (number | undefined)[] = [];
  const { promise: released, resolve: release } = Promise.withResolvers<undefined>();
  stack.behaviour.duringExport = async (runId) => {
    const project = await projectOf(runId);
    started.push(project);
    if (project === 2) await released;
  };
  const hostile = await stack.createExport({}, 2);
  await stack.command(hostile, 'backfill', lastHours(hanging), 2);
  await waitFor(() => started.length === slots, 'all slots are used by the single project');
  for (const project of [1, 3]) {
    const other = await stack.createExport({}, project);
    await stack.command(other, 'backfill', lastHours(1), project);
    await stack.waitForRun(other, 'Completed');
  }
  expect(started.toSorted()).toEqual([1, 2, 2, 3]);
  release(undefined);
  await waitFor(
    async () => (await stack.runsOf(hostile)).every(({ status }) => status === 'Completed'),
    'the runs of the first project complete too',
  );
  expect(started).toHaveLength(hanging + 2);
});
