import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { scheduleWorkflowId } from '../../src/contract/workflow_ids.ts';
import { createBehind } from '../isolation/behind.ts';
import { temporalCommand } from '../setup/temporal_command.ts';
import { until } from '../setup/until.ts';
import { createControlStack, type ControlStack } from '../temporal/control_stack.ts';
import { startsPerInterval } from './run_starts.ts';

const maximumAtOnce = 2;
let stack: ControlStack;
beforeAll(async () => {
  stack = await createControlStack({
    EXPORTD_MAX_CONCURRENT_RUNS: String(maximumAtOnce),
    // An export here waits for the next one to begin, without a heartbeat.
    EXPORTD_HEARTBEAT_TIMEOUT_MS: '60000',
  });
});
afterAll(() => stack.close());

const run = promisify(execFile);

describe('after all workers were down for several intervals', () => {
  it('each of them is run, oldest first and no more at once than allowed', async () => {
    const { id, owed } = await createBehind(stack, 5);
    let open = 0;
    let most = 0;
    const order: string[] = [];
    stack.behaviour.whileExporting = async (runId) => {
      open += 1;
      most = Math.max(most, open);
      const shown = (await stack.runsOf(id)).find((one) => one.id === runId);
      order.push(new Date(shown?.data_interval_start ?? 0).toISOString());
      await until(() => open === maximumAtOnce || order.length >= owed.length, 'a second one beside it');
      open -= 1;
    };
    await stack.reconcile();
    await stack.startWorker();
    const completed = async () =>
      (await stack.runsOf(id))
        .filter(({ status }) => status === 'Completed')
        .map(({ data_interval_start }) => new Date(data_interval_start).toISOString());
    await until(async () => {
      const done = await completed();
      return owed.every((start) => done.includes(start));
    }, 'every missed interval');
    expect(most).toBeLessThanOrEqual(maximumAtOnce);
    // In the journal strictly so; two that run side by side may begin their exports in either order.
    const opened = (await stack.runsOf(id)).map((one) => new Date(one.data_interval_start).toISOString());
    expect(opened).toEqual(opened.toSorted());
    expect(opened.slice(0, owed.length)).toEqual(owed);
    const starts = await startsPerInterval(stack.pool, id);
    expect(starts.filter(({ started }) => started !== 1)).toEqual([]);
    await stack.command(id, 'delete');
  });
});

describe('a schedule that is reset to its first task, after a hundred signals', () => {
  it('doubles no event, starts no run twice and loses no command', async () => {
    await stack.stopWorker();
    await stack.startWorker();
    stack.behaviour.whileExporting = () => Promise.resolve();
    const { id } = await createBehind(stack, 3);
    await stack.reconcile();
    const handle = stack.client.workflow.getHandle(scheduleWorkflowId(id));
    for (let signal = 0; signal < 50; signal += 1) {
      await handle.signal('pause', {});
      await handle.signal('unpause', {});
    }
    const commands = async () =>
      (
        await stack.pool.query<{ id: string; name: string; status: string }>(
          'select id, name, status from exportd.commands where batch_export_id = $1 order by position',
          [id],
        )
      ).rows;
    const decided = async (count: number) =>
      until(async () => {
        const rows = await commands();
        return rows.length === count && rows.every(({ status }) => status !== 'pending');
      }, `${count} outcomes`);
    await decided(100);
    const before = { commands: await commands(), events: await journalOf(id) };
    await run(await temporalCommand(), [
      ...['workflow', 'reset', '--type', 'FirstWorkflowTask', '--reason', 'a test'],
      ...['--workflow-id', scheduleWorkflowId(id), '--address', stack.settings.TEMPORAL_ADDRESS],
    ]);
    const paused = await stack.command(id, 'pause');
    expect(paused.status).toBe('applied');
    await decided(101);
    expect((await commands()).slice(0, 100)).toEqual(before.commands);
    const after = await journalOf(id);
    // What the reset brought: the pause, and perhaps intervals that became due meanwhile.
    expect(after.slice(0, before.events.length)).toEqual(before.events);
    expect(after.slice(before.events.length).filter((type) => type === 'BatchExportUnpaused')).toEqual([]);
    expect(after.slice(before.events.length).filter((type) => type === 'BatchExportPaused')).toHaveLength(1);
    const starts = await startsPerInterval(stack.pool, id);
    expect(starts.filter(({ started }) => started !== 1)).toEqual([]);
    expect(starts.length).toBeGreaterThan(0);
  });
});

const journalOf = async (id: string): Promise<string[]> =>
  (
    await stack.pool.query<{ event_type: string }>(
      'select event_type from exportd.journal_events where stream_id = $1 order by stream_version',
      [id],
    )
  ).rows.map(({ event_type }) => event_type);
