import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ApplicationFailure } from '@temporalio/common';
import { Context } from '@temporalio/activity';
import { waitFor } from '../setup/wait_for.ts';
import {
  type ControlPlaneHarness,
  createControlPlaneHarness,
  lastHours,
} from '../temporal/control_plane_harness.ts';
import { startableRun } from '../temporal/startable_run.ts';
import type { BarrierState } from '../../src/domain/barrier.ts';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import { workflowIds } from '../../src/contract/workflow_ids.ts';
import { blockedBarrier, checkBarrierSlowly, completingSmallRuns } from '../temporal/fakes.ts';
import { readLog } from '../decisions/read_log.ts';
import type { ReadRun } from '../decisions/read_runs.ts';
import { readEvents } from '../journal/read_stream.ts';
import { createRunStarter } from '../../src/temporal/clients/run_starter.ts';

let stack: ControlPlaneHarness;
beforeAll(async () => {
  stack = await createControlPlaneHarness({
    EXPORTD_RUN_RETRY_INITIAL: '1s',
    EXPORTD_SETTLE_TIMEOUT: '500ms',
  });
  await stack.startWorker();
});
beforeEach(() => stack.resetBehaviour());
afterAll(() => stack.close());

const logOf = async (id: string) => (await readLog(stack.pool, { batch_export_id: id })).join('\n');

/** The activities that a run's execution has scheduled, without local ones. */
async function scheduledActivities(run: ReadRun): Promise<string[]> {
  const handle = stack.client.workflow.getHandle(workflowIds(stack.settings).run(run));
  const { events } = await handle.fetchHistory();
  return (events ?? []).flatMap(
    ({ activityTaskScheduledEventAttributes: activity }) => activity?.activityType?.name ?? [],
  );
}

const recordMissingRows = (runId: string, replacedRunId: string) =>
  createRunRecorder(stack.journal).recordReplacement(runId, {
    replaced: { run_id: replacedRunId, generation: 1 },
    outcome: 'rows_missing',
    missing_rows: 2,
    bucket_rows: 10,
    source_rows: 12,
    source: null,
    generation: null,
  });

/** Exports until the activity is cancelled, with heartbeats. */
const exportUntilCancelled = async (): Promise<void> => {
  const context = Context.current();
  const timer = setInterval(() => context.heartbeat(), 100);
  await context.cancelled.finally(() => clearInterval(timer));
};

describe('the run workflow', () => {
  it('completes, with search attributes and a summary in Temporal', async () => {
    const id = await stack.createExportWithRun();
    const run = await stack.waitForRun(id, 'Completed');
    const handle = stack.client.workflow.getHandle(workflowIds(stack.settings).run(run));
    await handle.result();
    const { typedSearchAttributes, raw } = await handle.describe();
    expect(typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value])).toEqual(
      expect.arrayContaining([
        ['ExportdBatchExport', id],
        ['ExportdName', 'Events every minute'],
        ['ExportdRun', run.id],
        ['ExportdIntervalStart', run.data_interval_start],
        ['ExportdStatus', 'Completed'],
      ]),
    );
    expect(Buffer.from(raw.executionConfig?.userMetadata?.summary?.data ?? '').toString()).toMatch(
      /^"events of \\"Events every minute\\", \d{4}-\d\d-\d\d \d\d:00–(\d{4}-\d\d-\d\d )?\d\d:00"$/,
    );
  });

  it('publishes an interval without rows and exports nothing', async () => {
    stack.behaviour.countRows = () => Promise.resolve(0);
    stack.behaviour.duringExport = () => Promise.reject(new Error('must not be called'));
    const id = await stack.createExportWithRun();
    expect(await stack.waitForRun(id, 'Completed')).toMatchObject({ generation: 1, latest_error: null });
  });

  it('completes a small interval in the workflow task that counted it', async () => {
    stack.behaviour.completeSmallRun = completingSmallRuns(createRunRecorder(stack.journal));
    const id = await stack.createExportWithRun();
    const run = await stack.waitForRun(id, 'Completed');
    const handle = stack.client.workflow.getHandle(workflowIds(stack.settings).run(run));
    await handle.result();
    const { events } = await handle.fetchHistory();
    // The worker that started it, from an activity, took its first task with the response.
    expect(events?.[0]?.workflowExecutionStartedEventAttributes).toHaveProperty(
      'eagerExecutionAccepted',
      true,
    );
    const types = (events ?? []).map((event) =>
      Object.keys(event).find((field) => field.endsWith('EventAttributes')),
    );
    expect(types).toEqual([
      'workflowExecutionStartedEventAttributes',
      'workflowTaskScheduledEventAttributes',
      'workflowTaskStartedEventAttributes',
      'workflowTaskCompletedEventAttributes',
      // It counts, and completes.
      'markerRecordedEventAttributes',
      'upsertWorkflowSearchAttributesEventAttributes',
      'workflowExecutionCompletedEventAttributes',
    ]);
    const marker = events?.find(({ markerRecordedEventAttributes }) => markerRecordedEventAttributes);
    expect(Buffer.from(marker?.userMetadata?.summary?.data ?? '').toString()).toBe(
      '"Check, count, and export of few rows"',
    );
    expect((await handle.describe()).typedSearchAttributes.getAll()).toContainEqual(
      expect.objectContaining({ value: 'Completed' }),
    );
  });

  it('lets its backfill go on also if its worker dies once it has completed', async () => {
    const complete = completingSmallRuns(createRunRecorder(stack.journal));
    stack.behaviour.completeSmallRun = async (...of) => {
      await complete(...of);
      throw ApplicationFailure.retryable('It is killed.', 'Killed');
    };
    const hours = 5;
    const id = await stack.createExport();
    const { outcome } = await stack.command(id, 'backfill', lastHours(hours));
    const workflowId = workflowIds(stack.settings).backfill(outcome?.backfill_id ?? '');
    await waitFor(async () => {
      const runs = await stack.runsOf(id);
      return runs.length === hours && runs.every(({ status }) => status === 'Completed');
    }, 'all runs of the backfill');
    await stack.client.workflow.getHandle(workflowId).result();
  });

  it('leaves a small interval to an export worker that cannot be completed at once', async () => {
    const recorder = createRunRecorder(stack.journal);
    stack.behaviour.completeSmallRun = async (runId) => {
      // Its store hangs.
      await recorder.startExport(runId, 0);
      return false;
    };
    const id = await stack.createExportWithRun();
    const run = await stack.waitForRun(id, 'Completed');
    expect(await scheduledActivities(run)).toEqual(['exportInterval']);
  });

  it('waits for open transactions until the settle timeout, and logs what blocked it', async () => {
    const states: BarrierState[] = [];
    stack.behaviour.checkBarrier = (_, state) => {
      states.push(state);
      return Promise.resolve({ state: blockedBarrier, wait_ms: 50, blocked_by: ['a session of "etl"'] });
    };
    const id = await stack.createExportWithRun();
    await stack.waitForRun(id, 'Completed');
    const first = { phase: 'settling' };
    expect(states[0]).toEqual(first);
    // Temporal repeats a check whose result arrived too late.
    const later = states.slice(states.findLastIndex(({ phase }) => phase === first.phase) + 1);
    expect(later.length).toBeGreaterThan(0);
    expect(later).toEqual(later.map(() => blockedBarrier));
    expect(await logOf(id)).toContain('a session of "etl"');
    const { rows } = await stack.pool.query(
      'select barrier from exportd.unsettled_runs where batch_export_id = $1',
      [id],
    );
    expect(rows).toEqual([{ barrier: blockedBarrier }]);
  });

  it('asks a source that responds slowly by an ordinary activity, which keeps no workflow task open', async () => {
    stack.behaviour.checkBarrier = checkBarrierSlowly;
    const id = await stack.createExportWithRun();
    const run = await stack.waitForRun(id, 'Completed');
    expect(await scheduledActivities(run)).toEqual(['checkBarrier', 'exportInterval']);
  });

  it.each([
    ['of few rows', 100_000, ['exportInterval']],
    ['of more rows, by an activity of its own', 100_001, ['exportInterval', 'publishManifest']],
  ])('publishes an interval %s', async (_, rows, expected) => {
    stack.behaviour.countRows = () => Promise.resolve(rows);
    const id = await stack.createExportWithRun();
    expect(await scheduledActivities(await stack.waitForRun(id, 'Completed'))).toEqual(expected);
  });

  it('compares the source with the manifest that it replaces first, and is held if rows are missing', async () => {
    const id = await stack.createExportWithRun();
    const first = await stack.waitForRun(id, 'Completed');
    stack.behaviour.checkReplacement = (runId) =>
      recordMissingRows(runId, first.id).then(() => {
        throw ApplicationFailure.nonRetryable('2 rows are missing.', 'RowsMissingInSource');
      });
    stack.behaviour.duringExport = () => Promise.reject(new Error('must not be called'));
    expect(await stack.command(id, 'retry', { run_id: first.id })).toMatchObject({ status: 'applied' });
    const held = await stack.waitForRun(id, 'Failed');
    expect(held).toMatchObject({
      latest_error: 'RowsMissingInSource: 2 rows are missing.',
      generation: 0,
      retry_number: 0,
    });
    expect(await readEvents(stack.pool, held.id, 'RunFailed')).toEqual([
      {
        type: 'RunFailed',
        data: {
          latest_error: held.latest_error,
          held: { missing_rows: 2, bucket_rows: 10, source_rows: 12 },
        },
      },
    ]);
    expect(await stack.runsOf(id)).toHaveLength(2);
    stack.resetBehaviour();
    await stack.command(id, 'retry', { run_id: held.id });
    await waitFor(
      async () => (await stack.runsOf(id)).filter(({ status }) => status === 'Completed').length === 2,
      'a later retry completes',
    );
  });

  it('fails at once with a permanent error', async () => {
    stack.behaviour.duringExport = () =>
      Promise.reject(ApplicationFailure.nonRetryable('There is no bucket "b".', 'NoSuchBucket'));
    const id = await stack.createExportWithRun();
    const run = await stack.waitForRun(id, 'Failed');
    expect(run.latest_error).toBe('NoSuchBucket: There is no bucket "b".');
    await expect(
      stack.client.workflow.getHandle(workflowIds(stack.settings).run(run)).result(),
    ).rejects.toThrow();
    expect(await stack.runsOf(id)).toHaveLength(1);
  });

  it('ends as FailedRetryable when an error outlasts the retry budget, and the interval is retried', async () => {
    let failing = true;
    stack.behaviour.duringExport = () =>
      failing
        ? Promise.reject(ApplicationFailure.retryable('The S3 server did not respond.', 'Unavailable'))
        : Promise.resolve();
    stack.setActivityTimeout(2_000);
    const id = await stack.createExportWithRun();
    // On a busy machine a run may use up its budget before the error, and several may end before the first is seen.
    const failed = await waitFor(
      async () =>
        (await stack.runsOf(id)).findLast(
          ({ latest_error }) => latest_error === 'Unavailable: The S3 server did not respond.',
        ),
      'a run with that error',
    );
    expect(failed.status).toBe('FailedRetryable');
    failing = false;
    // No limit for the next run: the machine may be busy.
    stack.setActivityTimeout(undefined);
    const completed = await stack.waitForRun(id, 'Completed');
    expect(completed.data_interval_start).toBe(failed.data_interval_start);
    expect(completed.retry_number).toBeGreaterThan(failed.retry_number);
    expect(completed.generation).toBeGreaterThan(failed.generation);
  });

  it('does not use up its limits while all slots are taken', async () => {
    const slots = Promise.withResolvers<undefined>();
    stack.behaviour.duringExport = () => slots.promise;
    const taken = await Promise.all(
      Array.from({ length: stack.settings.EXPORTD_EXPORT_SLOTS }, () => stack.createExportWithRun()),
    );
    for (const id of taken) await stack.waitForRun(id, 'Running');
    // Half of it is left for everything but waiting, which takes a second on a busy machine.
    const limitMs = 6_000;
    stack.setRunTimeout(limitMs);
    const id = await stack.createExportWithRun();
    const run = await stack.waitForRun(id, 'Starting');
    const handle = stack.client.workflow.getHandle(workflowIds(stack.settings).run(run));
    // Of its first attempt: one that finds no slot for its project goes back to Temporal, which schedules it again.
    let scheduledAt: number | undefined;
    const hasWaited = waitFor(async () => {
      // The execution starts after the row.
      const execution = await handle.describe().catch(() => undefined);
      if (!execution) return false;
      expect(execution.status.name).toBe('RUNNING');
      const seconds = execution.raw.pendingActivities?.[0]?.scheduledTime?.seconds;
      if (seconds !== undefined && seconds !== null) scheduledAt ??= Number(seconds) * 1_000;
      // Rounded to seconds.
      return scheduledAt !== undefined && Date.now() > scheduledAt + 1_000 + limitMs;
    }, 'the export has waited for longer than its run may take');
    await hasWaited.finally(() => {
      stack.setRunTimeout(undefined);
      slots.resolve(undefined);
    });
    for (const each of [...taken, id]) await stack.waitForRun(each, 'Completed');
    expect(await stack.runsOf(id)).toHaveLength(1);
  });

  it('times out if it waits for its source for too long, and is retried', async () => {
    stack.behaviour.checkBarrier = () =>
      Promise.resolve({ state: { phase: 'settling' }, wait_ms: 100, blocked_by: [] });
    stack.setRunTimeout(2_000);
    const id = await stack.createExportWithRun();
    const timedOut = await stack.waitForRun(id, 'TimedOut');
    expect(timedOut.latest_error).toBe('The run exceeded its timeout (EXPORTD_RUN_TIMEOUT).');
    stack.setRunTimeout(undefined);
    stack.resetBehaviour();
    await stack.waitForRun(id, 'Completed');
  });

  it('shows what it is retried after while it waits for its source', async () => {
    let failing = true;
    stack.behaviour.checkBarrier = () =>
      failing
        ? Promise.reject(ApplicationFailure.retryable('The source is down.', 'DatabaseUnavailable'))
        : Promise.resolve({ state: { phase: 'open' }, wait_ms: 0, blocked_by: [] });
    const id = await stack.createExportWithRun();
    const run = await waitFor(
      async () => (await stack.runsOf(id)).find(({ latest_error }) => latest_error !== null),
      'the run shows an error',
    );
    expect(run).toMatchObject({
      status: 'Starting',
      latest_error: expect.stringMatching(
        /^DatabaseUnavailable: The source is down\. Retrying the check for open transactions until \S+Z\.$/,
      ),
    });
    expect(await logOf(id)).toContain(run.latest_error);
    failing = false;
    expect(await stack.waitForRun(id, 'Completed')).toMatchObject({ id: run.id, latest_error: null });
  });

  it('ends after its activity when it is cancelled, and its interval can be retried', async () => {
    stack.behaviour.duringExport = exportUntilCancelled;
    const id = await stack.createExportWithRun();
    const run = await stack.waitForRun(id, 'Running');
    expect(await stack.command(id, 'cancelRun', { run_id: run.id })).toMatchObject({ status: 'applied' });
    await expect(
      stack.client.workflow.getHandle(workflowIds(stack.settings).run(run)).result(),
    ).rejects.toThrow('cancelled');
    stack.resetBehaviour();
    expect(await stack.command(id, 'retry', { run_id: run.id })).toMatchObject({ status: 'applied' });
    await stack.waitForRun(id, 'Completed');
    expect((await stack.runsOf(id)).map(({ status }) => status)).toEqual(['Cancelled', 'Completed']);
  });

  it('is cancelled while its rows are counted, and its statement with it', async () => {
    const started = Promise.withResolvers<undefined>();
    const aborted = Promise.withResolvers<undefined>();
    stack.behaviour.countRows = (signal) => {
      // The local activity, which came first, ends by itself.
      const { isLocal } = Context.current().info;
      if (!isLocal) started.resolve(undefined);
      return new Promise((_, reject) => {
        signal?.addEventListener('abort', () => {
          if (!isLocal) aborted.resolve(undefined);
          reject(signal.reason as Error);
        });
      });
    };
    const id = await stack.createExportWithRun();
    await started.promise;
    const run = await stack.waitForRun(id, 'Starting');
    expect(await stack.command(id, 'cancelRun', { run_id: run.id })).toMatchObject({ status: 'applied' });
    await aborted.promise;
    await expect(
      stack.client.workflow.getHandle(workflowIds(stack.settings).run(run)).result(),
    ).rejects.toThrow('cancelled');
    expect((await stack.waitForRun(id, 'Cancelled')).latest_error).not.toBeNull();
  });

  it('is cancelled in exportd when it is cancelled in Temporal', async () => {
    stack.behaviour.duringExport = exportUntilCancelled;
    const id = await stack.createExportWithRun();
    const run = await stack.waitForRun(id, 'Running');
    const handle = stack.client.workflow.getHandle(workflowIds(stack.settings).run(run));
    await handle.cancel();
    expect((await stack.waitForRun(id, 'Cancelled')).latest_error).toBe('Cancelled in Temporal.');
    await expect(handle.result()).rejects.toThrow('cancelled');
  });

  describe('while it publishes', () => {
    /** Whether the journal has decided on the cancellation of an execution. */
    const hasAskedJournal = async (run: ReadRun): Promise<boolean> => {
      const { events } = await stack.client.workflow
        .getHandle(workflowIds(stack.settings).run(run))
        .fetchHistory();
      const requested = (events ?? []).findIndex(
        ({ workflowExecutionCancelRequestedEventAttributes: attributes }) => attributes,
      );
      return (
        requested >= 0 &&
        (events ?? []).slice(requested).some(({ markerRecordedEventAttributes: attributes }) => attributes)
      );
    };

    it('is cancelled before its claim, while a request is pending or its next attempt waits', async () => {
      const failures = [
        exportUntilCancelled,
        () =>
          Promise.reject(
            ApplicationFailure.create({ message: 'a test', type: 'Unavailable', nextRetryDelay: '1h' }),
          ),
      ];
      for (const beforeClaim of failures) {
        const started = Promise.withResolvers<undefined>();
        stack.behaviour.beforeClaim = () => {
          started.resolve(undefined);
          return beforeClaim();
        };
        const id = await stack.createExportWithRun();
        await started.promise;
        const run = await stack.waitForRun(id, 'Running');
        expect(await stack.command(id, 'delete')).toMatchObject({ status: 'applied' });
        await expect(
          stack.client.workflow.getHandle(workflowIds(stack.settings).run(run)).result(),
        ).rejects.toThrow('cancelled');
        expect((await stack.runsOf(id)).map(({ status }) => status)).toEqual(['Cancelled']);
      }
    });

    it('is cancelled in Temporal before its claim, also without rows, and with many', async () => {
      for (const rows of [7, 0, 100_001]) {
        stack.behaviour.countRows = () => Promise.resolve(rows);
        const started = Promise.withResolvers<undefined>();
        stack.behaviour.beforeClaim = () => {
          started.resolve(undefined);
          return exportUntilCancelled();
        };
        const id = await stack.createExportWithRun();
        await started.promise;
        const [run] = await stack.runsOf(id);
        if (!run) throw new Error('The run is gone.');
        const handle = stack.client.workflow.getHandle(workflowIds(stack.settings).run(run));
        await handle.cancel();
        await expect(handle.result()).rejects.toThrow('cancelled');
        expect(await stack.waitForRun(id, 'Cancelled')).toMatchObject({
          latest_error: 'Cancelled in Temporal.',
        });
      }
    });

    it.each([7, 100_001])(
      'completes if it is cancelled in Temporal after its claim, with %i rows',
      async (rows) => {
        stack.behaviour.countRows = () => Promise.resolve(rows);
        const started = Promise.withResolvers<undefined>();
        const continued = Promise.withResolvers<undefined>();
        let wasCancelled: boolean | undefined;
        stack.behaviour.afterClaim = async () => {
          const context = Context.current();
          const timer = setInterval(() => context.heartbeat(), 100);
          started.resolve(undefined);
          await continued.promise.finally(() => clearInterval(timer));
          wasCancelled = context.cancellationSignal.aborted;
        };
        const id = await stack.createExportWithRun();
        await started.promise;
        const run = await stack.waitForRun(id, 'Running');
        const handle = stack.client.workflow.getHandle(workflowIds(stack.settings).run(run));
        await handle.cancel();
        await waitFor(() => hasAskedJournal(run), 'the journal decides on the cancellation');
        continued.resolve(undefined);
        await handle.result();
        expect(await stack.waitForRun(id, 'Completed')).toMatchObject({ id: run.id });
        expect(wasCancelled).toBe(false);
      },
    );
  });

  it('completes without an error when its row does not exist', async () => {
    const absent = startableRun({
      run_id: randomUUID(),
      batch_export_id: randomUUID(),
      batch_export_name: 'Gone',
    });
    await createRunStarter(stack.client, stack.settings).start(absent);
    const handle = stack.client.workflow.getHandle(workflowIds(stack.settings).run(absent));
    await waitFor(async () => (await handle.describe()).status.name === 'COMPLETED', 'its end');
    expect((await handle.describe()).typedSearchAttributes.getAll()).toContainEqual(
      expect.objectContaining({ value: 'Absent' }),
    );
  });

  describe('of an interval that has just ended', () => {
    /** Starts such a run, which has no row, as a schedule does. */
    async function startWith(EXPORTD_SETTLE_DELAY: number) {
      const run = startableRun({
        run_id: randomUUID(),
        batch_export_id: randomUUID(),
        data_interval_end: new Date().toISOString(),
      });
      const starter = createRunStarter(stack.client, { ...stack.settings, EXPORTD_SETTLE_DELAY });
      expect(await starter.startAll([run])).toBe(0);
      return stack.client.workflow.getHandle(workflowIds(stack.settings).run(run));
    }

    it('waits for the settle delay in Temporal, without a workflow task', async () => {
      const handle = await startWith(1_500);
      await handle.result();
      const { events } = await handle.fetchHistory();
      const { firstWorkflowTaskBackoff } = events?.[0]?.workflowExecutionStartedEventAttributes ?? {};
      expect(firstWorkflowTaskBackoff).toMatchObject({ seconds: expect.anything(), nanos: 500_000_000 });
      expect(events?.filter(({ workflowTaskStartedEventAttributes: task }) => task)).toHaveLength(1);
    });

    it('ends at once when it is cancelled in that time', async () => {
      const handle = await startWith(3_600_000);
      await handle.cancel();
      await waitFor(async () => (await handle.describe()).status.name !== 'RUNNING', 'its end');
      expect((await handle.describe()).typedSearchAttributes.getAll()).toContainEqual(
        expect.objectContaining({ value: 'Absent' }),
      );
    });
  });
});
