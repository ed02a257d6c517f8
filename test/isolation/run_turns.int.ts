import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { workflowIds, workflowTypes } from '../../src/contract/workflow_ids.ts';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import { createRunTurns, type RunOrder, type RunTurns } from '../../src/export/run_turns.ts';
import { runInput } from '../../src/temporal/clients/run_input.ts';
import { taskQueues } from '../../src/temporal/task_queues.ts';
import { readCondition } from '../../src/projections/export_conditions.ts';
import { waitFor } from '../setup/wait_for.ts';
import {
  createControlPlaneHarness,
  lastHours,
  type ControlPlaneHarness,
} from '../temporal/control_plane_harness.ts';
import { checkBarrierSlowly, completingSmallRuns } from '../temporal/fakes.ts';
import { startableRun } from '../temporal/startable_run.ts';
import { createLaggingExport } from './lagging_export.ts';

const runs = 20;
/** Of a project at a time in their workflow tasks: one turn of sixteen is kept for others. */
const mostOfProject = 15;

/** Holds a turn until the end of the test, or until the returned function is called. */
async function holdTurn(turns: RunTurns): Promise<() => void> {
  const end = await turns.wait({ project: 'of the test' }, new AbortController().signal);
  if (!end) throw new Error('No turn is free.');
  held.push(end);
  return end;
}

const withWait = (wait: RunTurns['wait']): RunTurns => ({ wait, areTaken: () => false });

let stack: ControlPlaneHarness;
beforeAll(async () => {
  stack = await createControlPlaneHarness({ EXPORTD_BACKFILL_CONCURRENCY: String(runs) });
  await stack.startWorker();
});
beforeEach(() => stack.resetBehaviour());
const held: (() => void)[] = [];
afterEach(() => {
  for (const end of held.splice(0)) end();
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

it('older intervals of a project have their turn first, across its exports, and schedules before backfills', async () => {
  const turns = createRunTurns({ atOnce: 1, waitMs: 600_000 });
  const end = await holdTurn(turns);
  let asked = 0;
  stack.behaviour.turns = withWait((...of) => {
    asked += 1;
    return turns.wait(...of);
  });
  stack.behaviour.completeSmallRun = completingSmallRuns(createRunRecorder(stack.journal));
  const backfilled = await stack.createExport({}, 1);
  await stack.command(backfilled, 'backfill', lastHours(3), 1);
  const lagging = [await createLaggingExport(stack, 3, 1), await createLaggingExport(stack, 3, 1)];
  await stack.reconcile();
  const due = lagging.flatMap((one) => one.due);
  const count = due.length + 3;
  await waitFor(() => asked >= count, 'all runs wait for their turn');
  end();
  let order: { backfill_id: string | null; data_interval_end: string }[] = [];
  await waitFor(async () => {
    const { rows } = await stack.pool.query<(typeof order)[number]>(
      `select backfill_id, data_interval_end from exportd.batch_export_runs
       where status = 'Completed' and (batch_export_id = $1 or batch_export_id = any($2) and data_interval_start = any($3))
       order by finished_at, position`,
      [backfilled, lagging.map(({ id }) => id), due],
    );
    order = rows;
    return order.length === count;
  }, 'all runs complete');
  const ranks = order.map(
    ({ backfill_id, data_interval_end }) =>
      `${backfill_id === null ? 'schedule' : 'then backfill'} ${new Date(data_interval_end).toISOString()}`,
  );
  expect(ranks).toEqual(ranks.toSorted());
  // Their next minute must not ask for a turn in the tests that follow.
  for (const { id } of lagging) {
    await stack.command(id, 'pause');
    await waitFor(
      async () => (await stack.runsOf(id)).every(({ status }) => status === 'Completed'),
      'its runs complete',
    );
  }
});

it('a small run that is started by hand, without a priority, has its turn among the others', async () => {
  const asked: RunOrder[] = [];
  stack.behaviour.turns = withWait((order) => {
    asked.push(order);
    return Promise.resolve(undefined);
  });
  const id = await stack.createExportWithRun();
  await waitFor(() => asked.length > 0, 'the run asks for its turn');
  const [run] = await stack.runsOf(id);
  expect(asked[0]).toEqual({ project: '1', priority: 4, data_interval_end: run?.data_interval_end });
  if (!run) throw new Error('There is no run.');
  const workflowId = workflowIds(stack.settings).run(run);
  await stack.client.workflow.getHandle(workflowId).terminate();

  const turns = createRunTurns();
  stack.behaviour.turns = withWait((order, signal) => {
    asked.push(order);
    return turns.wait(order, signal);
  });
  stack.behaviour.completeSmallRun = completingSmallRuns(createRunRecorder(stack.journal));
  const { limits } = runInput(startableRun(), stack.settings);
  const started = await stack.client.workflow.start(workflowTypes.run, {
    workflowId,
    taskQueue: taskQueues(stack.settings).control,
    args: [{ run_id: run.id, limits }],
  });
  await started.result();
  expect(asked.at(-1)).toEqual({ project: '' });
  await stack.waitForRun(id, 'Completed');
});

it('a small run of a slow source takes a turn to be completed too, or leaves that to an export worker', async () => {
  stack.behaviour.checkBarrier = checkBarrierSlowly;
  let asked = 0;
  let completed = 0;
  stack.behaviour.turns = withWait(() => {
    asked += 1;
    return Promise.resolve(asked === 1 ? () => undefined : undefined);
  });
  stack.behaviour.completeSmallRun = () => {
    completed += 1;
    return Promise.resolve(false);
  };
  const id = await stack.createExportWithRun();
  await stack.waitForRun(id, 'Completed');
  expect(asked).toBeGreaterThan(1);
  expect(completed).toBe(0);
});

it('the wait for its turn is not limited as the one for its source is', async () => {
  stack.setRunTimeout(1);
  let asked = 0;
  stack.behaviour.turns = withWait(() => {
    asked += 1;
    return Promise.resolve(asked > 2 ? () => undefined : undefined);
  });
  const id = await stack.createExportWithRun();
  stack.setRunTimeout(undefined);
  expect(await stack.waitForRun(id, 'Completed')).toMatchObject({ latest_error: null });
});

it('an export whose runs wait long for their turn is behind for lack of capacity, until they have had it', async () => {
  const turns = createRunTurns({ atOnce: 1, waitMs: 100 });
  const end = await holdTurn(turns);
  stack.behaviour.turns = turns;
  const { id } = await createLaggingExport(stack, 3, 1);
  await stack.reconcile();
  const conditionNow = async () => {
    await stack.reportWorker();
    return readCondition(stack.pool, id);
  };
  await waitFor(async () => (await conditionNow())?.cause === 'behind_capacity', 'the export is behind');
  expect((await conditionNow())?.summary).toMatch(
    /^Behind for lack of capacity: \d intervals wait for their turn, and the only worker is busy\. .* Start one more worker\.$/,
  );
  end();
  await waitFor(async () => (await conditionNow())?.cause === 'ok', 'the export is no longer behind');
});
