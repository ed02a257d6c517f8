import type { BackgroundQueryInput } from '../../src/contract/background_query_input.ts';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ApplicationFailure } from '@temporalio/common';
import { NativeConnection, type ReplayHistoriesIterable, Worker } from '@temporalio/worker';
import { createQueryActivities } from '../../activities/query.ts';
import type { ScheduleInput } from '../../src/contract/workflow_inputs.ts';
import { workflowIds, workflowTypes } from '../../src/contract/workflow_ids.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { readBackfills } from '../decisions/read_backfills.ts';
import { sharedBundle } from '../setup/shared_bundle.ts';
import { waitFor } from '../setup/wait_for.ts';
import {
  type ControlPlaneHarness,
  createControlPlaneHarness,
  lastHours,
  wakingBackfills,
} from '../temporal/control_plane_harness.ts';
import { blockedBarrier } from '../temporal/fakes.ts';
import { readCommands } from '../journal/read_commands.ts';

describe('a flood of signals, while the workflow continues as new after every 50', () => {
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
        commands = (await readCommands(stack.pool, id)).filter(({ name }) => name !== 'create');
        return commands.length >= count && commands.every(({ status }) => status !== 'pending');
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
    for await (const { error } of Worker.runReplayHistories(
      { workflowBundle, replayName: 'floods' },
      iterable,
    ))
      outcomes.push(error?.message ?? 'replayed');
    return outcomes;
  }
  const fetchHistory = (id: string, runId: string) => scheduleOf(id, runId).fetchHistory();

  /** Each alternates with the one before. */
  const names = Array.from({ length: 100 }, (_, index) => (index % 2 === 0 ? 'pause' : 'unpause'));
  /** Distinct bodies, more than the server buffers for an open workflow task. */
  const times = Array.from({ length: 260 }, (_, index) =>
    new Date(Date.UTC(2026, 0, 1) + index * 1_000).toISOString(),
  );

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
    for (const last_paused_at of times) await scheduleOf(id).signal('pause', { last_paused_at });
    await stack.startWorker();
    const commands = await decided(id, times.length);
    expect(commands.map(({ body }) => body.last_paused_at)).toEqual(times);
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

describe('the backfill workflow', () => {
  let stack: ControlPlaneHarness;
  beforeAll(async () => {
    // Fewer than the steps of 24 intervals, even when several of them end at the same time.
    stack = await createControlPlaneHarness({ EXPORTD_CONTINUE_AS_NEW_COMMANDS: '5' });
    await stack.startWorker();
  });
  afterAll(() => stack.close());

  const statusOf = async (id: string) => (await readBackfills(stack.pool, { id }))[0]?.status;

  /** Waits until the details of a backfill in the Temporal UI match. Its execution starts after the command's outcome. */
  const waitForDetails = (backfillId: string, pattern: RegExp) =>
    waitFor(async () => {
      const handle = stack.client.workflow.getHandle(workflowIds(stack.settings).backfill(backfillId));
      const metadata = await handle
        .query<{ currentDetails?: string } | null>('__temporal_workflow_metadata')
        .catch((error: unknown) => {
          if (error instanceof Error && error.name === 'WorkflowNotFoundError') return null;
          throw error;
        });
      return pattern.test(metadata?.currentDetails ?? '');
    }, `details like ${pattern}`);

  /** Backfills 24 hours of a new export, until the workflow has ended too. */
  async function backfillWhole() {
    const id = await stack.createExport();
    const { outcome } = await stack.command(id, 'backfill', lastHours(24));
    const backfillId = outcome?.backfill_id ?? '';
    await waitFor(async () => (await statusOf(backfillId)) === 'Completed', 'the end of the backfill');
    const handle = stack.client.workflow.getHandle(workflowIds(stack.settings).backfill(backfillId));
    await handle.result();
    return { id, backfillId, handle };
  }

  it('runs every interval once, a few at a time, across several executions', async () => {
    let running = 0;
    let maxRunning = 0;
    const wake = wakingBackfills(stack);
    stack.behaviour.duringExport = async (...of) => {
      running += 1;
      maxRunning = Math.max(maxRunning, running);
      await wake(...of);
      running -= 1;
    };
    const { id, backfillId, handle } = await backfillWhole();
    const runs = await stack.runsOf(id);
    expect(runs.map(({ status }) => status)).toEqual(Array.from({ length: 24 }, () => 'Completed'));
    expect(new Set(runs.map((run) => run.data_interval_start)).size).toBe(24);
    expect(maxRunning).toBeLessThanOrEqual(stack.settings.EXPORTD_BACKFILL_CONCURRENCY);
    const { raw, typedSearchAttributes } = await handle.describe();
    const attributes = typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value]);
    expect(Object.fromEntries(attributes)).toMatchObject({
      ExportdProject: '1',
      ExportdBatchExport: id,
      ExportdModel: 'events',
      ExportdDestination: 'S3',
      ExportdBackfill: backfillId,
      ExportdStatus: 'Completed',
    });
    expect(raw.workflowExecutionInfo?.firstRunId).not.toBe(raw.workflowExecutionInfo?.execution?.runId);
  });

  it('takes no step for each of its runs, which take their own', async () => {
    const { EXPORTD_BACKFILL_CONCURRENCY: concurrency } = stack.settings;
    stack.behaviour.duringExport = () => Promise.resolve();
    const { handle } = await backfillWhole();
    const { events } = await handle.fetchHistory();
    const signals = (events ?? []).filter((event) => event.workflowExecutionSignaledEventAttributes);
    // The one that has started it, and those of the last runs.
    expect(signals.length).toBeLessThanOrEqual(1 + concurrency);
  });

  it('starts no run while it is paused, and ends when it is cancelled', async () => {
    const id = await stack.createExport();
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    stack.behaviour.duringExport = () => released;
    const { outcome } = await stack.command(id, 'backfill', lastHours(10));
    const backfill_id = outcome?.backfill_id ?? '';
    await stack.command(id, 'pauseBackfill', { backfill_id });
    release();
    await waitFor(
      async () => (await stack.runsOf(id)).every(({ status }) => status === 'Completed'),
      'the runs that had started',
    );
    expect(await stack.runsOf(id)).toHaveLength(3);
    await waitForDetails(backfill_id, /^3 of 10 intervals, paused$/);
    await stack.command(id, 'cancelBackfill', { backfill_id });
    await stack.client.workflow.getHandle(workflowIds(stack.settings).backfill(backfill_id)).result();
    expect(await statusOf(backfill_id)).toBe('Cancelled');
  });

  it('reports its automatic pause until it is unpaused', async () => {
    const defaultExport = stack.behaviour.duringExport;
    stack.behaviour.duringExport = () =>
      Promise.reject(ApplicationFailure.nonRetryable('The bucket was deleted.', 'NoSuchBucket'));
    const id = await stack.createExport();
    // Enough that some have not started when the third has failed.
    const { outcome } = await stack.command(id, 'backfill', lastHours(12));
    const backfill_id = outcome?.backfill_id ?? '';
    await waitForDetails(backfill_id, /^[3-8] of 12 intervals, paused$/);
    stack.behaviour.duringExport = defaultExport;
    await stack.command(id, 'unpauseBackfill', { backfill_id });
    await stack.client.workflow.getHandle(workflowIds(stack.settings).backfill(backfill_id)).result();
    await waitForDetails(backfill_id, /^12 of 12 intervals$/m);
    expect(await statusOf(backfill_id)).toBe('Completed');
  });
});

describe('the background query workflow', () => {
  let stack: ControlPlaneHarness;
  let connection: NativeConnection;
  beforeAll(async () => {
    stack = await createControlPlaneHarness();
    connection = await NativeConnection.connect({ address: stack.settings.TEMPORAL_ADDRESS });
  });
  afterAll(async () => {
    await connection.close();
    await stack.close();
  });

  it('is cancelled even if its attempt fails during the cancellation', async () => {
    const task_queue = `query-${randomUUID()}`;
    const started = Promise.withResolvers<undefined>();
    const outcomes: string[] = [];
    const worker = await Worker.create({
      connection,
      taskQueue: task_queue,
      // Heartbeats deliver a cancellation; by default the SDK would send one every 48 s.
      maxHeartbeatThrottleInterval: 200,
      workflowBundle: sharedBundle(),
      activities: {
        ...createQueryActivities({
          runQuery: async (_, signal) => {
            started.resolve(undefined);
            await once(signal, 'abort');
            throw new Error('The connection was lost.');
          },
          recordOutcome: () => Promise.resolve(),
          heartbeatTimeoutMs: 400,
          logger: createLogger('test', { EXPORTD_LOG_LEVEL: 'silent' }),
        }),
        recordBackgroundOutcome: ({ status }: { status: string }) => Promise.resolve(outcomes.push(status)),
      },
    });
    const query = { team_id: 1, id: randomUUID(), execution_id: randomUUID() };
    const input: BackgroundQueryInput = {
      execution_id: query.execution_id,
      task_queue,
      timeout_ms: 600_000,
      heartbeat_timeout_ms: 60_000,
    };
    await worker.runUntil(async () => {
      const handle = await stack.client.workflow.start(workflowTypes.backgroundQuery, {
        workflowId: workflowIds(stack.settings).query(query),
        taskQueue: task_queue,
        args: [input],
      });
      await started.promise;
      await handle.cancel();
      await expect(handle.result()).rejects.toThrow();
    });
    expect(outcomes).toEqual(['cancelled']);
  });
});

describe('a schedule', () => {
  let stack: ControlPlaneHarness;
  beforeAll(async () => {
    stack = await createControlPlaneHarness();
    await stack.startWorker();
  });
  beforeEach(() => stack.resetBehaviour());
  afterAll(() => stack.close());

  it('leaves a run that was terminated before its export started to the reconciler', async () => {
    stack.behaviour.checkBarrier = () =>
      Promise.resolve({ state: blockedBarrier, wait_ms: 200, blocked_by: [] });
    const id = await stack.createExport();
    await stack.command(id, 'backfill', lastHours(1));
    const run = await stack.waitForRun(id, 'Starting');
    const handle = stack.client.workflow.getHandle(workflowIds(stack.settings).run(run));
    await waitFor(
      () =>
        handle.terminate('manually').then(
          () => true,
          () => false,
        ),
      'the terminated run',
    );
    // Both the backfill and the schedule check all runs that have not started.
    const [backfill] = await readBackfills(stack.pool, { batch_export_id: id });
    await stack.client.workflow
      .getHandle(workflowIds(stack.settings).backfill(backfill?.id ?? ''))
      .signal('wake');
    await stack.command(id, 'pause');
    expect((await handle.describe()).status.name).toBe('TERMINATED');
    await stack.reconcile();
    expect(await stack.waitForRun(id, 'Terminated')).toMatchObject({ id: run.id });
  });

  it('fails at once when it is started manually with an invalid id', async () => {
    const handle = await stack.client.workflow.start('batchExportSchedule', {
      workflowId: `manual-${stack.settings.EXPORTD_TASK_QUEUE_PREFIX}`,
      taskQueue: `${stack.settings.EXPORTD_TASK_QUEUE_PREFIX}-control`,
      args: [{ batch_export_id: 'nonsense' }],
    });
    await expect(handle.result()).rejects.toThrow();
  });
});
