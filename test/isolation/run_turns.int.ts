import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { waitFor } from '../setup/wait_for.ts';
import {
  createControlPlaneHarness,
  lastHours,
  type ControlPlaneHarness,
} from '../temporal/control_plane_harness.ts';

const runs = 20;
/** Of a project at a time in their workflow tasks: one turn of sixteen is kept for others. */
const mostOfProject = 15;

let stack: ControlPlaneHarness;
beforeAll(async () => {
  stack = await createControlPlaneHarness({ EXPORTD_BACKFILL_CONCURRENCY: String(runs) });
  await stack.startWorker();
});
afterAll(() => stack.close());

it('small runs of a project that hang have not all turns of a worker, and the others wait for theirs', async () => {
  const released = Promise.withResolvers<undefined>();
  let hanging = 0;
  stack.behaviour.completeSmallRun = async (runId) => {
    if ((await stack.projectOf(runId)) === 2) {
      hanging += 1;
      await released.promise;
    }
    return false;
  };
  const hostile = await stack.createExport({}, 2);
  await stack.command(hostile, 'backfill', lastHours(runs), 2);
  await waitFor(() => hanging === mostOfProject, 'the runs of the project have their turns');
  const other = await stack.createExport({}, 1);
  await stack.command(other, 'backfill', lastHours(1), 1);
  await stack.waitForRun(other, 'Completed');
  expect(hanging).toBe(mostOfProject);
  released.resolve(undefined);
  await waitFor(async () => {
    const found = await stack.runsOf(hostile);
    return found.length === runs && found.every(({ status }) => status === 'Completed');
  }, 'the runs of the project complete too');
});
