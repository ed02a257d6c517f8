import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { temporal } from '@temporalio/proto';
import { notificationWorkflow } from '../../src/contract/notification_input.ts';
import { wakeSignal } from '../../src/contract/workflow_inputs.ts';
import { workflowIds, workflowTypes } from '../../src/contract/workflow_ids.ts';
import { taskQueues } from '../../src/temporal/task_queues.ts';
import { readLog } from '../decisions/read_log.ts';
import { hourAgo } from '../setup/hours.ts';
import { waitFor } from '../setup/wait_for.ts';
import {
  createControlPlaneHarness,
  lastHours,
  type ControlPlaneHarness,
} from '../temporal/control_plane_harness.ts';
import { readEvents } from '../journal/read_stream.ts';
import { commandsInWords } from '../journal/read_commands.ts';

let stack: ControlPlaneHarness;
beforeAll(async () => {
  stack = await createControlPlaneHarness({ EXPORTD_CONTINUE_AS_NEW_COMMANDS: '5' });
  await stack.startWorker();
});
afterAll(() => stack.close());

const scheduleOf = (id: string) => stack.client.workflow.getHandle(workflowIds(stack.settings).schedule(id));

const decidedOf = (id: string) => commandsInWords(stack.pool, id);

const pausedOf = async (id: string) =>
  (
    await stack.pool.query<{ paused: boolean }>('select paused from exportd.batch_exports where id = $1', [
      id,
    ])
  ).rows[0]?.paused;

describe('the schedule workflow', () => {
  it('applies commands in order that were sent while no worker ran', async () => {
    const id = await stack.createExport();
    await stack.stopWorker();
    for (const name of ['pause', 'unpause', 'update', 'pause', 'unpause', 'pause'] as const)
      await stack.send(id, name, name === 'update' ? { changes: { name: 'Renamed' } } : {});
    await stack.startWorker();
    await waitFor(
      async () => (await decidedOf(id)).every((line) => !line.endsWith('pending')),
      'all outcomes',
    );
    expect(await decidedOf(id)).toEqual([
      'create applied',
      'pause applied',
      'unpause applied',
      'update applied',
      'pause applied',
      'unpause applied',
      'pause applied',
    ]);
    expect(await pausedOf(id)).toBe(true);
  });

  it('stores each manual signal as a command', async () => {
    const id = await stack.createExport();
    const handle = scheduleOf(id);
    await handle.signal('pause', {});
    await handle.signal('unpause');
    await handle.signal('pause', { anything: 'else' });
    await handle.signal('backfill', lastHours(1));
    const run = await stack.waitForRun(id, 'Completed');
    await handle.signal('retry', { run_id: run.id });
    await waitFor(async () => (await stack.runsOf(id)).length === 2, 'the retry');
    await handle.signal('delete', {});
    await handle.result();
    expect(await decidedOf(id)).toEqual([
      'create applied',
      'pause applied',
      'unpause applied',
      'pause applied',
      'backfill applied',
      'retry applied',
      'delete applied',
    ]);
  });

  it('records invalid signals as rejected commands', async () => {
    const id = await stack.createExport();
    const payload = (encoding: string, data: string): temporal.api.common.v1.IPayload => ({
      metadata: { encoding: Buffer.from(encoding) },
      data: Buffer.from(data),
    });
    const json = (value: unknown) => [payload('json/plain', JSON.stringify(value))];
    const invalid: [string, temporal.api.common.v1.IPayload[]][] = [
      ['pause', json('text')],
      ['pause', json({ last_paused_at: 'yesterday' })],
      ['pause', json({ last_paused_at: '0000-01-01T00:00:00Z' })],
      ['pause', json({ long: 'x'.repeat(100_000) })],
      ['pause', [payload('json/plain', '{')]],
      ['pause', [payload('binary/encrypted', '{}')]],
      ['pause', [payload('binary/plain', '{}')]],
      ['pause', [{ data: Buffer.from('{}') }]],
      ['pause', [...json({}), ...json({})]],
      ['backfill', json({ start_at: 1, end_at: null })],
      ['retry', json({ run_id: '\u0000' })],
      ['retry', json({ run_id: randomUUID() })],
      ['update', json({ changes: { name: 'manual' } })],
      ['no such signal', json({})],
      ['zero\u0000character', json({})],
      ['__temporal_reserved', json({})],
      ['__proto__', json({})],
      ['pause', json({ command_id: randomUUID() })],
      ['pause', json({ command_id: 'no id' })],
    ];
    for (const [signalName, payloads] of invalid)
      await stack.client.workflowService.signalWorkflowExecution({
        namespace: stack.settings.TEMPORAL_NAMESPACE,
        workflowExecution: { workflowId: workflowIds(stack.settings).schedule(id) },
        signalName,
        input: { payloads },
      });
    expect((await stack.command(id, 'pause')).status).toBe('applied');
    const rejected = async () => (await decidedOf(id)).filter((line) => line.endsWith('rejected')).length;
    await waitFor(async () => (await rejected()) === invalid.length, 'every rejection');
    expect(await decidedOf(id)).toHaveLength(invalid.length + 2);
    const log = await readLog(stack.pool, { batch_export_id: id });
    expect(log.filter((message) => message.includes('has no command'))).toEqual([
      expect.stringMatching(/^Manual signal was rejected: .* no command "[0-9a-f-]{36}"\.$/),
      'Manual signal was rejected: The batch export has no command "no id".',
    ]);
  });

  it('continues as new without losing or duplicating a signal', async () => {
    const id = await stack.createExport();
    const handle = scheduleOf(id);
    const sent = Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? 'pause' : 'unpause'));
    for (const name of sent) await handle.signal(name, {});
    await waitFor(async () => (await decidedOf(id)).length === 41, 'all signals');
    await waitFor(
      async () => (await decidedOf(id)).every((line) => !line.endsWith('pending')),
      'all outcomes',
    );
    expect(await decidedOf(id)).toEqual(['create applied', ...sent.map((name) => `${name} applied`)]);
    await waitFor(async () => {
      const { workflowExecutionInfo } = (await handle.describe()).raw;
      return workflowExecutionInfo?.firstRunId !== workflowExecutionInfo?.execution?.runId;
    }, 'a new execution');
  });

  it('is restarted by the next command after it was terminated', async () => {
    const id = await stack.createExport();
    await scheduleOf(id).terminate('manually');
    expect((await stack.command(id, 'pause')).status).toBe('applied');
  });

  it.each([
    ['ended two days ago, until a command', { end_at: hourAgo(48).toISOString() }, []],
    [
      'starts in 400 days, until its first interval is due',
      { start_at: hourAgo(-400 * 24).toISOString(), end_at: null },
      [expect.closeTo(400, -1)],
    ],
  ])('sleeps if its export %s', async (_, bounds, expectedTimers) => {
    const id = await stack.createExport({ interval: 'every 1 minutes', ...bounds });
    let events: temporal.api.history.v1.IHistoryEvent[] = [];
    await waitFor(async () => {
      const { raw } = await scheduleOf(id).describe();
      events = (await scheduleOf(id).fetchHistory()).events ?? [];
      const hasStepped = events.some(({ markerRecordedEventAttributes: marker }) => marker);
      return hasStepped && !raw.pendingWorkflowTask;
    }, 'the first step');
    const timers = events.flatMap(({ timerStartedEventAttributes: timer }) => timer ?? []);
    const days = timers.map((timer) => Number(timer.startToFireTimeout?.seconds) / (24 * 60 * 60));
    expect(days).toEqual(expectedTimers);
    expect(await readEvents(stack.pool, id)).toMatchObject([{ type: 'BatchExportCreated' }]);
  });

  it.each<[string, unknown]>([
    ...[...Object.values(workflowTypes), notificationWorkflow].flatMap((type): [string, unknown][] => [
      [type, undefined],
      [type, null],
      [type, 'nonsense'],
    ]),
    [workflowTypes.schedule, { batch_export_id: randomUUID(), signals: [5] }],
    [workflowTypes.schedule, { batch_export_id: randomUUID(), signals: 'pause' }],
    [workflowTypes.run, { run_id: randomUUID(), limits: { timeout_ms: 60_000 } }],
  ])(
    'fails at once, like other workflows, with the invalid input of a manual start: %s %j',
    async (type, input) => {
      const started = stack.client.workflow.execute(type, {
        workflowId: `invalid-${randomUUID()}`,
        taskQueue: taskQueues(stack.settings).control,
        args: input === undefined ? [] : [input],
      });
      await expect(started).rejects.toMatchObject({
        cause: { type: 'InvalidInput', stack: expect.stringMatching(/\(workflows\/\w+\.ts:\d+:0\)/) },
      });
    },
  );

  it('continues as new after some quiet steps, so that what a worker caches of it stays small', async () => {
    const id = await stack.createExport();
    const { runId } = await scheduleOf(id).describe();
    await waitFor(async () => {
      await scheduleOf(id).signal(wakeSignal);
      return (await scheduleOf(id).describe()).runId !== runId;
    }, 'a new execution');
    expect(await stack.command(id, 'pause')).toMatchObject({ status: 'applied' });
    const { events } = await scheduleOf(id).fetchHistory();
    expect(events?.[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId).toBe(runId);
  });

  it('completes at once when the create command was rejected', async () => {
    const id = await stack.createExport();
    await stack.command(id, 'delete');
    expect((await stack.command(id, 'pause')).status).toBe('rejected');
    await expect(scheduleOf(id).result()).resolves.toBeUndefined();
  });
});
