import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Worker, type ReplayHistoriesIterable } from '@temporalio/worker';
import { workflowIds } from '../../src/contract/workflow_ids.ts';
import type { ScheduleInput } from '../../src/contract/workflow_inputs.ts';
import { waitFor } from '../setup/wait_for.ts';
import { sharedBundle } from '../setup/shared_bundle.ts';
import { createControlPlaneHarness, type ControlPlaneHarness } from '../temporal/control_plane_harness.ts';

let stack: ControlPlaneHarness;
beforeAll(async () => {
  stack = await createControlPlaneHarness({ EXPORTD_CONTINUE_AS_NEW_COMMANDS: '50' });
  await stack.startWorker();
});
afterAll(() => stack.close());

const scheduleOf = (id: string, runId?: string) =>
  stack.client.workflow.getHandle(workflowIds(stack.settings).schedule(id), runId);

interface DecidedCommand {
  readonly name: string;
  readonly body: { readonly last_paused_at?: string };
  readonly status: string;
}

/** Waits until an export has `count` commands besides its creation, all decided. */
async function decided(id: string, count: number): Promise<DecidedCommand[]> {
  let commands: DecidedCommand[] = [];
  await waitFor(
    async () => {
      const { rows } = await stack.pool.query<DecidedCommand>(
        `select name, body, status from exportd.commands where batch_export_id = $1 and name <> 'create' order by position`,
        [id],
      );
      commands = rows;
      return rows.length >= count && rows.every(({ status }) => status !== 'pending');
    },
    () => `${count} outcomes; found ${commands.length} commands`,
  );
  return commands;
}

/** Run ids of the executions of a schedule, oldest first. */
async function chainOf(id: string): Promise<string[]> {
  const chain: string[] = [];
  const { raw } = await scheduleOf(id).describe();
  let next = raw.workflowExecutionInfo?.firstRunId;
  while (next) {
    chain.push(next);
    const { events } = await scheduleOf(id, next).fetchHistory();
    next = events?.at(-1)?.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId;
  }
  return chain;
}

/** Replays each execution of a schedule and returns the results. */
async function replayed(id: string): Promise<string[]> {
  const histories: { workflowId: string; history: Awaited<ReturnType<typeof fetchHistory>> }[] = [];
  for (const runId of await chainOf(id))
    histories.push({
      workflowId: workflowIds(stack.settings).schedule(id),
      history: await fetchHistory(id, runId),
    });
  const workflowBundle = sharedBundle();
  const outcomes: string[] = [];
  const iterable: ReplayHistoriesIterable = histories;
  for await (const { error } of Worker.runReplayHistories({ workflowBundle, replayName: 'floods' }, iterable))
    outcomes.push(error?.message ?? 'replayed');
  return outcomes;
}
const fetchHistory = (id: string, runId: string) => scheduleOf(id, runId).fetchHistory();

/** Each alternates with the one before. */
const names = Array.from({ length: 150 }, (_, index) => (index % 2 === 0 ? 'pause' : 'unpause'));
/** Distinct bodies, more than the server buffers for an open workflow task. */
const times = Array.from({ length: 300 }, (_, index) =>
  new Date(Date.UTC(2026, 0, 1) + index * 1_000).toISOString(),
);

describe('a flood of signals, while the workflow continues as new after every 50', () => {
  it('sent manually one after the other are each applied once, in order', async () => {
    const id = await stack.createExport();
    for (const [index, name] of names.entries()) {
      await scheduleOf(id).signal(name, {});
      // Leaves the workflow time to continue as new.
      if (index % 50 === 49) await decided(id, index + 1);
    }
    const commands = await decided(id, names.length);
    expect(commands.map(({ name, status }) => `${name} ${status}`)).toEqual(
      names.map((name) => `${name} applied`),
    );
    expect((await chainOf(id)).length).toBeGreaterThanOrEqual(names.length / 50);
  });

  it('sent manually at the same time are all stored once, and every history replays', async () => {
    const id = await stack.createExport();
    // The step of the create command is local; wait for its end.
    await waitFor(async () => !(await scheduleOf(id).describe()).raw.pendingWorkflowTask, 'an idle schedule');
    await Promise.all(times.map((last_paused_at) => scheduleOf(id).signal('pause', { last_paused_at })));
    const commands = await decided(id, times.length);
    expect(commands.map(({ body }) => body.last_paused_at).toSorted()).toEqual(times);
    expect(new Set(await replayed(id))).toEqual(new Set(['replayed']));
  });

  it('sent manually before a worker runs keep their order when the workflow continues as new among them', async () => {
    const id = await stack.createExport();
    await stack.stopWorker();
    const waiting = times.slice(0, 260);
    for (const last_paused_at of waiting) await scheduleOf(id).signal('pause', { last_paused_at });
    await stack.startWorker();
    const commands = await decided(id, waiting.length);
    expect(commands.map(({ body }) => body.last_paused_at)).toEqual(waiting);
    const [, second] = await chainOf(id);
    const { events } = await fetchHistory(id, second ?? '');
    const [input] = events?.[0]?.workflowExecutionStartedEventAttributes?.input?.payloads ?? [];
    const { is_flooding, signals } = JSON.parse(Buffer.from(input?.data ?? []).toString()) as ScheduleInput;
    expect([is_flooding, signals?.length]).toEqual([true, 160]);
  });

  it('of stored commands, sent repeatedly at the same time, are each decided once', async () => {
    const id = await stack.createExport();
    await Promise.all(
      names.map(async (name) => {
        const command = await stack.send(id, name === 'pause' ? 'pause' : 'unpause');
        // A signal that Temporal does not accept in time is sent again, as the reconciler does.
        await waitFor(
          () =>
            stack.schedules.signal({ batch_export_id: id, name, id: command }).then(
              () => true,
              () => false,
            ),
          `Temporal accepts the ${name} signal`,
        );
      }),
    );
    const commands = await decided(id, names.length);
    const { rows } = await stack.pool.query<{ changes: number }>(
      `select count(*) as changes from exportd.journal_events where stream_id = $1
       and event_type in ('BatchExportPaused', 'BatchExportUnpaused')`,
      [id],
    );
    expect(rows[0]?.changes).toBe(commands.filter(({ status }) => status === 'applied').length);
    expect(commands).toHaveLength(names.length);
  });
});
