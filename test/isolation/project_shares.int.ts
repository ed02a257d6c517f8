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
/** Of its attempts at a time: half of those that may have yielded their slot. */
const mostOfProject = 6;

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

it('attempts of a project that hang keep no run of another project waiting', async () => {
  const started: (number | undefined)[] = [];
  const [released, met] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()];
  const ofOthers = () => started.filter((project) => project !== 2).length;
  stack.behaviour.duringExport = async (runId) => {
    const project = await stack.projectOf(runId);
    started.push(project);
    if (project === 2) await released.promise;
    // All slots are free for them at the same time.
    if (ofOthers() > slots) met.resolve(undefined);
    if (project !== 2) await met.promise;
  };
  const hostile = await stack.createExport({}, 2);
  await stack.command(hostile, 'backfill', lastHours(hanging), 2);
  await waitFor(() => started.length === slots, 'all slots are used by the single project');
  const others: string[] = [];
  for (const [project, hours] of [
    [1, slots],
    [3, 1],
  ] as const) {
    const other = await stack.createExport({}, project);
    await stack.command(other, 'backfill', lastHours(hours), project);
    others.push(other);
  }
  for (const other of others) await stack.waitForRun(other, 'Completed');
  await waitFor(() => started.length - ofOthers() === mostOfProject, 'the project uses its share');
  const later = await stack.createExport({}, 4);
  await stack.command(later, 'backfill', lastHours(1), 4);
  await stack.waitForRun(later, 'Completed');
  expect(started.length - ofOthers()).toBe(mostOfProject);
  released.resolve(undefined);
  await waitFor(
    async () => (await stack.runsOf(hostile)).every(({ status }) => status === 'Completed'),
    'the runs of the first project complete too',
  );
  expect(started.length - ofOthers()).toBe(hanging);
});
