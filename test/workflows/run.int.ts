import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ApplicationFailure } from '@temporalio/common';
import { Context } from '@temporalio/activity';
import { until } from '../setup/until.ts';
import {
  createControlStack,
  lastHours,
  type Behaviour,
  type ControlStack,
} from '../temporal/control_plane_harness.ts';
import type { BarrierState } from '../../src/source/source.ts';
import { createRunStarter } from '../../src/temporal/clients/run_starter.ts';
import { runWorkflowId } from '../../src/contract/workflow_ids.ts';

let stack: ControlStack;
let usual: Behaviour;
beforeAll(async () => {
  stack = await createControlStack({
    EXPORTD_RUN_RETRY_INITIAL: '1s',
    EXPORTD_SETTLE_TIMEOUT: '500ms',
  });
  usual = { ...stack.behaviour };
  await stack.startWorker();
});
beforeEach(() => {
  Object.assign(stack.behaviour, usual);
});
afterAll(() => stack.close());

/** An export with one run, of the last whole hour. */
async function exportWithRun(): Promise<string> {
  const id = await stack.createExport();
  expect(await stack.command(id, 'backfill', lastHours(1))).toMatchObject({ status: 'applied' });
  return id;
}

const logOf = async (id: string) =>
  (
    await stack.pool.query<{ message: string }>(
      'select message from exportd.log_lines where batch_export_id = $1 order by id',
      [id],
    )
  ).rows
    .map(({ message }) => message)
    .join('\n');

/** Exports until the activity is cancelled, with a heartbeat all the while. */
const exportUntilCancelled = async (): Promise<void> => {
  const context = Context.current();
  const timer = setInterval(() => context.heartbeat(), 100);
  await context.cancelled.finally(() => clearInterval(timer));
};

describe('the run workflow', () => {
  it('completes, and shows who it is in Temporal', async () => {
    const id = await exportWithRun();
    const run = await stack.runIn(id, 'Completed');
    const handle = stack.client.workflow.getHandle(runWorkflowId(run));
    await handle.result();
    const { typedSearchAttributes, raw } = await handle.describe();
    expect(typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value])).toEqual(
      expect.arrayContaining([
        ['ExportdBatchExport', id],
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
    stack.behaviour.whileExporting = () => Promise.reject(new Error('must not be called'));
    const id = await exportWithRun();
    expect(await stack.runIn(id, 'Completed')).toMatchObject({ generation: 1, latest_error: null });
  });

  it('waits for open transactions, and says who held it when it gives up', async () => {
    const states: BarrierState[] = [];
    const held: BarrierState = { phase: 'transactions', blockers: ['3/4'] };
    stack.behaviour.checkBarrier = (_, state) => {
      states.push(state);
      return Promise.resolve({ state: held, wait_ms: 50, blocked_by: ['a session of "etl"'] });
    };
    const id = await exportWithRun();
    await stack.runIn(id, 'Completed');
    const first = { phase: 'settling' };
    expect(states[0]).toEqual(first);
    // Temporal has a look repeated when it learns too late how the first one ended.
    const later = states.slice(states.findLastIndex(({ phase }) => phase === first.phase) + 1);
    expect(later.length).toBeGreaterThan(0);
    expect(later).toEqual(later.map(() => held));
    expect(await logOf(id)).toContain('a session of "etl"');
  });

  it('fails at once with an error that no retry cures', async () => {
    stack.behaviour.whileExporting = () =>
      Promise.reject(ApplicationFailure.nonRetryable('There is no bucket "b".', 'NoSuchBucket'));
    const id = await exportWithRun();
    const run = await stack.runIn(id, 'Failed');
    expect(run.latest_error).toBe('NoSuchBucket: There is no bucket "b".');
    await expect(stack.client.workflow.getHandle(runWorkflowId(run)).result()).rejects.toThrow();
    expect(await stack.runsOf(id)).toHaveLength(1);
  });

  it('fails retryable when a fault outlasts the budget, and a new run of the interval follows', async () => {
    let failing = true;
    stack.behaviour.whileExporting = () =>
      failing
        ? Promise.reject(ApplicationFailure.retryable('S3 does not answer.', 'Unavailable'))
        : Promise.resolve();
    stack.setBudget(2_000);
    const id = await exportWithRun();
    // On a busy machine a run may spend its budget before it meets the fault, and more than one may end before it is seen.
    const failed = await until(
      async () =>
        (await stack.runsOf(id)).findLast(
          ({ latest_error }) => latest_error === 'Unavailable: S3 does not answer.',
        ),
      'a run that met the fault',
    );
    expect(failed.status).toBe('FailedRetryable');
    failing = false;
    // The next run may take as long as a busy machine needs, as every other one here.
    stack.setBudget(undefined);
    const completed = await stack.runIn(id, 'Completed');
    expect(completed.data_interval_start).toBe(failed.data_interval_start);
    expect(completed.retry_number).toBeGreaterThan(failed.retry_number);
    expect(completed.generation).toBeGreaterThan(failed.generation);
  });

  it('ends with its activity when it is cancelled, and its interval can be exported again', async () => {
    stack.behaviour.whileExporting = exportUntilCancelled;
    const id = await exportWithRun();
    const run = await stack.runIn(id, 'Running');
    expect(await stack.command(id, 'cancelRun', { run_id: run.id })).toMatchObject({ status: 'applied' });
    await expect(stack.client.workflow.getHandle(runWorkflowId(run)).result()).rejects.toThrow('cancelled');
    Object.assign(stack.behaviour, usual);
    expect(await stack.command(id, 'retry', { run_id: run.id })).toMatchObject({ status: 'applied' });
    await stack.runIn(id, 'Completed');
    expect((await stack.runsOf(id)).map(({ status }) => status)).toEqual(['Cancelled', 'Completed']);
  });

  it('counts as cancelled when it is cancelled in Temporal', async () => {
    stack.behaviour.whileExporting = exportUntilCancelled;
    const id = await exportWithRun();
    const run = await stack.runIn(id, 'Running');
    await stack.client.workflow.getHandle(runWorkflowId(run)).cancel();
    expect((await stack.runIn(id, 'Cancelled')).latest_error).toBe('Cancelled in Temporal.');
  });

  it('leaves quietly when its row is not there or has ended', async () => {
    const absent = {
      run_id: randomUUID(),
      batch_export_id: randomUUID(),
      batch_export_name: 'Gone',
      team_id: 1,
      model: 'events',
      destination_type: 'S3',
      interval: 'hour',
      data_interval_start: '2026-11-01T10:00:00.000Z',
      data_interval_end: '2026-11-01T11:00:00.000Z',
      backfill_id: null,
    };
    await createRunStarter(stack.client, stack.settings).start(absent);
    const handle = stack.client.workflow.getHandle(runWorkflowId(absent));
    await until(async () => (await handle.describe()).status.name === 'COMPLETED', 'its end');
    expect((await handle.describe()).typedSearchAttributes.getAll()).toContainEqual(
      expect.objectContaining({ value: 'Absent' }),
    );
  });
});
