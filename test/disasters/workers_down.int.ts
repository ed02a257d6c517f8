import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { workflowIds } from '../../src/contract/workflow_ids.ts';
import { createLaggingExport } from '../isolation/lagging_export.ts';
import { waitFor } from '../setup/wait_for.ts';
import { createControlPlaneHarness, type ControlPlaneHarness } from '../temporal/control_plane_harness.ts';
import { resetToFirstTask } from './reset_workflow.ts';
import { startsPerInterval } from './run_starts.ts';
import { readEvents } from '../journal/read_stream.ts';
import { readCommands } from '../journal/read_commands.ts';

const maxConcurrentRuns = 2;
let stack: ControlPlaneHarness;
beforeAll(async () => {
  stack = await createControlPlaneHarness({
    EXPORTD_MAX_CONCURRENT_RUNS: String(maxConcurrentRuns),
    // An export waits here for the next one to start, without a heartbeat.
    EXPORTD_HEARTBEAT_TIMEOUT: '60s',
  });
});
afterAll(() => stack.close());

describe('after all workers were down for several intervals', () => {
  it('each runs, oldest first, within the concurrency limit', async () => {
    const { id, due } = await createLaggingExport(stack, 5);
    let active = 0;
    let maxActive = 0;
    const order: string[] = [];
    stack.behaviour.duringExport = async (runId) => {
      active += 1;
      maxActive = Math.max(maxActive, active);
      const current = (await stack.runsOf(id)).find((one) => one.id === runId);
      order.push(new Date(current?.data_interval_start ?? 0).toISOString());
      await waitFor(
        () => active === maxConcurrentRuns || order.length >= due.length,
        'a second concurrent run',
      );
      active -= 1;
    };
    await stack.reconcile();
    await stack.startWorker();
    const completed = async () =>
      (await stack.runsOf(id))
        .filter(({ status }) => status === 'Completed')
        .map(({ data_interval_start }) => new Date(data_interval_start).toISOString());
    await waitFor(async () => {
      const done = await completed();
      return due.every((start) => done.includes(start));
    }, 'every missed interval');
    expect(maxActive).toBeLessThanOrEqual(maxConcurrentRuns);
    // Only the journal has a strict order: concurrent runs may start their exports in either order.
    const intervalStarts = (await stack.runsOf(id)).map((one) =>
      new Date(one.data_interval_start).toISOString(),
    );
    expect(intervalStarts).toEqual(intervalStarts.toSorted());
    expect(intervalStarts.slice(0, due.length)).toEqual(due);
    const starts = await startsPerInterval(stack.pool, id);
    expect(starts.filter(({ started }) => started !== 1)).toEqual([]);
    await stack.command(id, 'delete');
  });
});

describe('a schedule that is reset to its first task after a hundred signals', () => {
  it('duplicates no event, starts no run twice and loses no command', async () => {
    await stack.stopWorker();
    await stack.startWorker();
    stack.behaviour.duringExport = () => Promise.resolve();
    const { id } = await createLaggingExport(stack, 3);
    await stack.reconcile();
    const handle = stack.client.workflow.getHandle(workflowIds(stack.settings).schedule(id));
    for (let signal = 0; signal < 50; signal += 1) {
      await handle.signal('pause', {});
      await handle.signal('unpause', {});
    }
    const commands = () => readCommands(stack.pool, id);
    const decided = async (count: number) =>
      waitFor(async () => {
        const rows = await commands();
        return rows.length === count && rows.every(({ status }) => status !== 'pending');
      }, `${count} outcomes`);
    await decided(100);
    const before = { commands: await commands(), events: await journalOf(id) };
    await resetToFirstTask(stack.settings.TEMPORAL_ADDRESS, workflowIds(stack.settings).schedule(id));
    const paused = await stack.command(id, 'pause');
    expect(paused.status).toBe('applied');
    await decided(101);
    expect((await commands()).slice(0, 100)).toEqual(before.commands);
    const after = await journalOf(id);
    // The pause after the reset, and perhaps intervals that became due.
    expect(after.slice(0, before.events.length)).toEqual(before.events);
    expect(after.slice(before.events.length).filter((type) => type === 'BatchExportUnpaused')).toEqual([]);
    expect(after.slice(before.events.length).filter((type) => type === 'BatchExportPaused')).toHaveLength(1);
    const starts = await startsPerInterval(stack.pool, id);
    expect(starts.filter(({ started }) => started !== 1)).toEqual([]);
    expect(starts.length).toBeGreaterThan(0);
  });
});

const journalOf = async (id: string): Promise<string[]> =>
  (await readEvents(stack.pool, id)).map(({ type }) => type);
