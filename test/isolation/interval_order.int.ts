import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { workflowIds } from '../../src/contract/workflow_ids.ts';
import { readCondition } from '../../src/projections/export_conditions.ts';
import { waitFor } from '../setup/wait_for.ts';
import {
  createControlPlaneHarness,
  lastHours,
  type ControlPlaneHarness,
} from '../temporal/control_plane_harness.ts';
import { createLaggingExport } from './lagging_export.ts';

const [large, small] = [1, 2];
/** Projects whose runs use the slot of the worker, and the one that is kept for a project that uses none. */
const busy = [8, 9];
/** Minutes that the schedules have missed. */
const missed = 3;

let stack: ControlPlaneHarness;
beforeAll(async () => {
  stack = await createControlPlaneHarness({ EXPORTD_EXPORT_SLOTS: '1', EXPORTD_HEARTBEAT_TIMEOUT: '60s' });
  await stack.startWorker();
});
afterAll(() => stack.close());

interface RunOfProject {
  readonly team_id: number;
  readonly data_interval_end: string;
}

/** The completed runs of both projects, in the order of their ends. */
async function completed(): Promise<RunOfProject[]> {
  const { rows } = await stack.pool.query<RunOfProject>(
    `select team_id, data_interval_end from exportd.batch_export_runs
     where team_id = any($1) and status = 'Completed' order by finished_at, position`,
    [[large, small]],
  );
  return rows;
}

/** How many runs of an export have a pending activity in Temporal. */
async function pendingRuns(id: string): Promise<number> {
  const pending = await Promise.all(
    (await stack.runsOf(id)).map(async (run) => {
      const handle = stack.client.workflow.getHandle(workflowIds(stack.settings).run(run));
      const described = await handle.describe().catch(() => undefined);
      return (described?.raw.pendingActivities?.length ?? 0) > 0;
    }),
  );
  return pending.filter(Boolean).length;
}

const conditionOf = async (id: string) => {
  await stack.reportWorker();
  return readCondition(stack.pool, id);
};

it('older intervals of a project come first, across its exports, and no project starves another', async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<undefined>();
  const { promise: smallLanded, resolve: landSmall } = Promise.withResolvers<undefined>();
  const started: number[] = [];
  stack.behaviour.duringExport = async (runId, _range, progress) => {
    const project = (await stack.projectOf(runId)) ?? 0;
    started.push(project);
    // A task that lets older intervals go first comes back after a second, in which others need not wait for it. So what has a slot
    // keeps it until the small project has landed.
    const lasts = busy.includes(project) ? released : project === large ? smallLanded : undefined;
    if (!lasts) return;
    // An attempt without progress would yield its slot.
    const rowByRow = setInterval(() => {
      progress.rows += 1;
    }, 100);
    await lasts.finally(() => clearInterval(rowByRow));
  };
  for (const project of busy) {
    const id = await stack.createExport({}, project);
    await stack.command(id, 'backfill', lastHours(1), project);
  }
  await waitFor(() => started.length === busy.length, 'all slots are in use');
  const lagging: string[] = [];
  for (const project of [large, large, large, large, small])
    lagging.push((await createLaggingExport(stack, missed, project)).id);
  await stack.reconcile();
  for (const id of lagging)
    await waitFor(async () => (await pendingRuns(id)) >= missed, 'the runs of an export wait for a slot');
  expect(started).toHaveLength(busy.length);

  for (const id of lagging)
    expect(await conditionOf(id)).toMatchObject({
      severity: 'warning',
      cause: 'behind_capacity',
      owner: 'operator',
      summary: expect.stringMatching(
        /^Behind for lack of capacity: \d intervals wait for a free slot, and the only one of 1 worker is in use\. .* Start one more worker/,
      ),
    });

  release(undefined);
  const runs = lagging.length * missed;
  const ofSmall = async () => (await completed()).filter(({ team_id }) => team_id === small);
  await waitFor(
    async () => (await ofSmall()).length === missed,
    'the small project does not wait for the large one',
  );
  landSmall(undefined);
  await waitFor(async () => (await completed()).length >= runs, 'all of them');
  for (const project of [large, small]) {
    const ends = (await completed())
      .filter(({ team_id }) => team_id === project)
      .map(({ data_interval_end }) => new Date(data_interval_end).toISOString());
    expect(ends).toEqual(ends.toSorted());
  }

  for (const id of lagging)
    await waitFor(async () => (await conditionOf(id))?.cause === 'ok', 'the export is no longer behind');
});

it('schedules precede runs, by turns of the projects, so that none starts a mark after the next', async () => {
  const id = await stack.createExport({}, large);
  const described = await stack.client.workflow
    .getHandle(workflowIds(stack.settings).schedule(id))
    .describe();
  expect(described.raw.workflowExecutionInfo?.priority).toMatchObject({
    priorityKey: 1,
    fairnessKey: String(large),
  });
});
